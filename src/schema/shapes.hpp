// Set operations on shapes.
#pragma once

#include "schema/sets.hpp"

namespace thalweg::schema {

ValueSet every_value();
ValueSet no_value();
ArrayShape every_array();
ObjectShape every_object();

ValueSet intersect(const ValueSet& a, const ValueSet& b, Sets& sets);
ValueSet unite(ValueSet a, const ValueSet& b, Sets& sets);
ValueSet complement(const ValueSet& a, Sets& sets);
bool is_empty(const ValueSet& a, Sets& sets);

/// What an object of this shape may have under `name`.
SetId value_of(const ObjectShape& shape, std::string_view name);

/// An operation that no shape can express; `keyword` is to blame.
struct Inexpressible {
  const char* keyword;
};

}  // namespace thalweg::schema
