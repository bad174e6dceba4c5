#include "schema/shapes.hpp"

#include <algorithm>

#include "schema/numbers.hpp"
#include "schema/schema.hpp"

namespace thalweg::schema {
namespace {

std::optional<std::size_t> smaller(std::optional<std::size_t> a, std::optional<std::size_t> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

StringShape intersect(const StringShape& a, const StringShape& b, Sets& sets) {
  StringShape shape{intersect(a.language, b.language, sets.work()), std::max(a.least, b.least),
                    smaller(a.most, b.most)};
  if (is_all(shape.language)) return shape;
  return {with_lengths(shape.language, shape.least, shape.most, sets.work()), 0, std::nullopt};
}

SetId item_of(const ArrayShape& shape, std::size_t index) {
  return index < shape.prefix.size() ? shape.prefix[index] : shape.rest;
}

ArrayShape intersect(const ArrayShape& a, const ArrayShape& b, Sets& sets) {
  ArrayShape result;
  for (std::size_t i = 0; i < std::max(a.prefix.size(), b.prefix.size()); ++i)
    result.prefix.push_back(sets.both({item_of(a, i), item_of(b, i)}));
  result.rest = sets.both({a.rest, b.rest});
  result.least = std::max(a.least, b.least);
  result.most = smaller(a.most, b.most);
  result.counted = a.counted;
  result.counted.insert(result.counted.end(), b.counted.begin(), b.counted.end());
  result.unique = a.unique != nullptr ? a.unique : b.unique;
  return result;
}

ObjectShape intersect(const ObjectShape& a, const ObjectShape& b, Sets& sets) {
  ObjectShape result;
  for (const Property& property : a.properties)
    result.properties.push_back(
        {property.name, sets.both({property.value, value_of(b, property.name)}), property.required});
  for (const Property& property : b.properties) {
    const auto known = std::find_if(result.properties.begin(), result.properties.end(),
                                    [&](const Property& other) { return other.name == property.name; });
    if (known != result.properties.end()) {
      known->required = known->required || property.required;
    } else {
      result.properties.push_back(
          {property.name, sets.both({value_of(a, property.name), property.value}), property.required});
    }
  }
  for (const Others& x : a.others) {
    for (const Others& y : b.others) {
      Language names = intersect(x.names, y.names, sets.work());
      if (!is_empty(names)) result.others.push_back({std::move(names), sets.both({x.value, y.value})});
    }
  }
  result.least = std::max(a.least, b.least);
  result.origin = a.least > b.least ? a.origin : b.origin;
  result.most = smaller(a.most, b.most);
  result.some = a.some;
  result.some.insert(result.some.end(), b.some.begin(), b.some.end());
  return result;
}

bool is_empty(const StringShape& shape, Sets&) {
  return is_empty(shape.language) || (shape.most && *shape.most < shape.least);
}

bool is_empty(const ArrayShape& shape, Sets& sets) {
  std::size_t most = shape.most.value_or(shape.least);
  for (std::size_t i = 0; i < std::min(most, shape.prefix.size()); ++i) {
    if (sets.is_empty(shape.prefix[i])) most = i;
  }
  if (most > shape.prefix.size() && sets.is_empty(shape.rest)) most = shape.prefix.size();
  return most < shape.least ||
         std::any_of(shape.counted.begin(), shape.counted.end(), [&](const Counted& counted) {
           return (counted.most && *counted.most < counted.least) ||
                  (counted.least > 0 && sets.is_empty(counted.item));
         });
}

bool is_empty(const ObjectShape& shape, Sets& sets) {
  std::size_t required = 0;
  for (const Property& property : shape.properties) {
    if (!property.required) continue;
    ++required;
    if (sets.is_empty(property.value)) return true;
  }
  if (shape.most && *shape.most < std::max(required, shape.least)) return true;
  return std::any_of(shape.some.begin(), shape.some.end(),
                     [&](const Others& some) { return is_empty(some.names) || sets.is_empty(some.value); });
}

template <class Shape>
void add(std::vector<Shape>& list, Shape shape, Sets& sets) {
  sets.work().spend(20);
  if (is_empty(shape, sets)) return;
  if (list.size() >= SchemaLimits::shapes) throw TooLarge();
  list.push_back(std::move(shape));
}

template <class Shape>
std::vector<Shape> intersect(const std::vector<Shape>& a, const std::vector<Shape>& b, Sets& sets) {
  std::vector<Shape> result;
  for (const Shape& x : a) {
    for (const Shape& y : b) add(result, intersect(x, y, sets), sets);
  }
  return result;
}

std::vector<StringShape> complement(const StringShape& shape, Sets&) {
  std::vector<StringShape> result;
  if (!is_all(shape.language)) result.push_back({complement(shape.language), 0, std::nullopt});
  if (shape.least > 0) result.push_back({all_strings(), 0, shape.least - 1});
  if (shape.most) result.push_back({all_strings(), *shape.most + 1, std::nullopt});
  return result;
}

std::vector<ArrayShape> complement(const ArrayShape& shape, Sets& sets) {
  std::vector<ArrayShape> result;
  if (shape.unique != nullptr && !(shape.most && *shape.most < 2)) throw Inexpressible{"uniqueItems"};
  if (shape.least > 0) {
    ArrayShape shorter;
    shorter.most = shape.least - 1;
    result.push_back(shorter);
  }
  if (shape.most) {
    ArrayShape longer;
    longer.least = *shape.most + 1;
    result.push_back(longer);
  }
  for (std::size_t i = 0; i < shape.prefix.size(); ++i) {
    ArrayShape other;
    other.prefix.assign(i, kEverything);
    other.prefix.push_back(sets.negation(shape.prefix[i]));
    other.least = i + 1;
    result.push_back(other);
  }
  if (shape.rest != kEverything) {
    ArrayShape other;
    other.counted.push_back({sets.negation(shape.rest), shape.prefix.size(), 1, std::nullopt});
    result.push_back(other);
  }
  for (const Counted& counted : shape.counted) {
    if (counted.least > 0) {
      ArrayShape fewer;
      fewer.counted.push_back({counted.item, counted.from, 0, counted.least - 1});
      result.push_back(fewer);
    }
    if (counted.most) {
      ArrayShape more;
      more.counted.push_back({counted.item, counted.from, *counted.most + 1, std::nullopt});
      result.push_back(more);
    }
  }
  return result;
}

std::vector<ObjectShape> complement(const ObjectShape& shape, Sets& sets) {
  std::vector<ObjectShape> result;
  if (shape.least > 0) {
    result.push_back(every_object());
    result.back().most = shape.least - 1;
  }
  if (shape.most) {
    result.push_back(every_object());
    result.back().least = *shape.most + 1;
  }
  std::vector<std::string> names;
  for (const Property& property : shape.properties) {
    names.push_back(property.name);
    if (property.required) {
      result.push_back(every_object());
      result.back().properties.push_back({property.name, kNothing, false});
    }
    if (property.value != kEverything) {
      result.push_back(every_object());
      result.back().properties.push_back({property.name, sets.negation(property.value), true});
    }
  }
  const Language undeclared = complement(words(std::move(names), sets.work()));
  for (const Others& others : shape.others) {
    if (others.value == kEverything) continue;
    result.push_back(every_object());
    result.back().some.push_back(
        {intersect(others.names, undeclared, sets.work()), sets.negation(others.value)});
  }
  for (const Others& some : shape.some) {
    ObjectShape none = every_object();
    none.others = {{some.names, sets.negation(some.value)}, {complement(some.names), kEverything}};
    result.push_back(std::move(none));
  }
  return result;
}

template <class Shape>
std::vector<Shape> complement(const std::vector<Shape>& list, std::vector<Shape> all, Sets& sets) {
  for (const Shape& shape : list) {
    std::vector<Shape> outside;
    for (Shape& part : complement(shape, sets)) add(outside, std::move(part), sets);
    all = intersect(all, outside, sets);
  }
  return all;
}

template <class Shape>
void append(std::vector<Shape>& to, const std::vector<Shape>& from, Sets& sets) {
  for (const Shape& shape : from) add(to, shape, sets);
}

}  // namespace

ValueSet every_value() {
  return {
      true, true, true, all_numbers(), {{all_strings(), 0, std::nullopt}}, {every_array()}, {every_object()}};
}

ValueSet no_value() {
  ValueSet none;
  none.numbers = no_strings();
  return none;
}

ArrayShape every_array() {
  return {};
}

ObjectShape every_object() {
  ObjectShape shape;
  shape.others.push_back({all_strings(), kEverything});
  return shape;
}

SetId value_of(const ObjectShape& shape, std::string_view name) {
  for (const Property& property : shape.properties) {
    if (property.name == name) return property.value;
  }
  for (const Others& others : shape.others) {
    if (contains(others.names, name)) return others.value;
  }
  return kNothing;
}

ValueSet intersect(const ValueSet& a, const ValueSet& b, Sets& sets) {
  ValueSet result;
  result.null = a.null && b.null;
  result.no = a.no && b.no;
  result.yes = a.yes && b.yes;
  result.numbers = intersect(a.numbers, b.numbers, sets.work());
  result.strings = intersect(a.strings, b.strings, sets);
  result.arrays = intersect(a.arrays, b.arrays, sets);
  result.objects = intersect(a.objects, b.objects, sets);
  return result;
}

ValueSet unite(ValueSet a, const ValueSet& b, Sets& sets) {
  a.null = a.null || b.null;
  a.no = a.no || b.no;
  a.yes = a.yes || b.yes;
  a.numbers = unite(a.numbers, b.numbers, sets.work());
  append(a.strings, b.strings, sets);
  append(a.arrays, b.arrays, sets);
  append(a.objects, b.objects, sets);
  return a;
}

ValueSet complement(const ValueSet& a, Sets& sets) {
  const ValueSet all = every_value();
  ValueSet result;
  result.null = !a.null;
  result.no = !a.no;
  result.yes = !a.yes;
  result.numbers = intersect(all.numbers, complement(a.numbers), sets.work());
  result.strings = complement(a.strings, all.strings, sets);
  result.arrays = complement(a.arrays, all.arrays, sets);
  result.objects = complement(a.objects, all.objects, sets);
  return result;
}

bool is_empty(const ValueSet& a, Sets& sets) {
  const auto all_empty = [&](const auto& list) {
    return std::all_of(list.begin(), list.end(), [&](const auto& shape) { return is_empty(shape, sets); });
  };
  return !a.null && !a.no && !a.yes && is_empty(a.numbers) && all_empty(a.strings) && all_empty(a.arrays) &&
         all_empty(a.objects);
}

}  // namespace thalweg::schema
