// The one form of a schema that validation and generation share.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schema/automaton.hpp"
#include "schema/value.hpp"

namespace thalweg::schema {

using NodeId = std::uint32_t;

/// Bits of the types of JSON Schema; an integer is also a number.
enum Type : unsigned {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kNumber = 8,
  kString = 16,
  kArray = 32,
  kObject = 64,
  kAllTypes = 127
};

struct NamedNode {
  std::string name;
  NodeId node;
};

struct PatternNode {
  std::string pattern;
  Language names;
  NodeId node;
};

/// One schema of a document, with the keywords that say something.
struct Node {
  std::string path;            ///< JSON Pointer into the document's text
  std::optional<bool> always;  ///< a boolean schema
  unsigned types = kAllTypes;
  std::optional<Array> enumeration;
  std::optional<Value> constant;

  std::optional<Decimal> minimum, maximum, exclusive_minimum, exclusive_maximum, multiple_of;

  std::size_t min_length = 0;
  std::optional<std::size_t> max_length;
  std::optional<Language> pattern;
  std::optional<Language> format;

  std::vector<NodeId> prefix_items;
  std::optional<NodeId> items, contains, unevaluated_items;
  std::size_t min_items = 0;
  std::optional<std::size_t> max_items;
  std::size_t min_contains = 1;
  std::optional<std::size_t> max_contains;
  bool unique_items = false;

  std::vector<NamedNode> properties;
  std::vector<PatternNode> pattern_properties;
  std::optional<NodeId> additional_properties, property_names, unevaluated_properties;
  std::vector<std::string> required;
  std::size_t min_properties = 0;
  std::optional<std::size_t> max_properties;
  std::vector<std::pair<std::string, std::vector<std::string>>> dependent_required;

  // Schemas that apply to the same value.
  std::optional<NodeId> reference;
  std::vector<NodeId> all_of, any_of, one_of;
  std::optional<NodeId> negated, condition, consequence, alternative;
  std::vector<NamedNode> dependent_schemas;

  /// The schemas that apply to the same value, whether they must hold or not.
  std::vector<NodeId> in_place() const;
};

struct Document {
  Value text;
  std::vector<Node> nodes;  ///< nodes[0] is the root
  Work work{0};             ///< what reading has left; generation goes on with a copy
};

}  // namespace thalweg::schema
