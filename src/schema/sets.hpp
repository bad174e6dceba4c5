// Schemas as sets of values that can be intersected, united and complemented. A set is a list of shapes for
// each type of value; the sets of items and members inside a shape are named and worked out when they are
// needed, which is what lets a schema refer to itself.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schema/document.hpp"

namespace thalweg::schema {

using SetId = std::uint32_t;
constexpr SetId kEverything = 0;
constexpr SetId kNothing = 1;

/// Either the language is all strings or the lengths say nothing.
struct StringShape {
  Language language;
  std::size_t least = 0;
  std::optional<std::size_t> most;
};

/// How many items at or behind `from` are in a set.
struct Counted {
  SetId item;
  std::size_t from = 0;
  std::size_t least = 0;
  std::optional<std::size_t> most;
};

struct ArrayShape {
  std::vector<SetId> prefix;  ///< of the first items, where there are that many
  SetId rest = kEverything;
  std::size_t least = 0;
  std::optional<std::size_t> most;
  std::vector<Counted> counted;
  const Node* unique = nullptr;  ///< the schema that asks for items without equals
};

struct Property {
  std::string name;
  SetId value;
  bool required = false;
};

struct Others {
  Language names;
  SetId value;
};

struct ObjectShape {
  std::vector<Property> properties;  ///< in the order of generation
  std::vector<Others> others;  ///< of all other names: languages without common strings that make up all
  std::size_t least = 0;
  std::optional<std::size_t> most;
  std::vector<Others> some;      ///< for each there is a member with such a name and value
  const Node* origin = nullptr;  ///< of `least`
};

/// The union of its parts.
struct ValueSet {
  bool null = false;
  bool no = false;
  bool yes = false;
  Language numbers;  ///< in canonical spelling (numbers.hpp)
  std::vector<StringShape> strings;
  std::vector<ArrayShape> arrays;
  std::vector<ObjectShape> objects;
};

/// A set that is needed to work out itself.
struct Cycle {};

/// The sets of one document. Names of sets are values: equal combinations have equal names. Throws
/// SchemaError for what grows beyond SchemaLimits. Not thread-safe.
class Sets {
 public:
  explicit Sets(const Document& document);
  ~Sets();

  SetId of_node(NodeId node);
  SetId of_value(const Value& value);
  SetId both(std::vector<SetId> sets);
  SetId either(std::vector<SetId> sets);
  SetId negation(SetId set);

  /// The set worked out. The reference stays valid as long as this object. Throws Cycle.
  const ValueSet& shapes(SetId set);
  /// true: certainly empty.
  bool is_empty(SetId set);
  /// Strings in a set, as one language.
  Language strings_of(SetId set);
  /// The values of a set that has at most `most` of them, all of them scalars.
  std::optional<std::vector<Value>> list_values(SetId set, std::size_t most);

  /// The place of a schema that the set is made of, for messages.
  std::string path_of(SetId set) const;

  Work& work() { return work_; }

 private:
  friend class NodeShapes;  // own_keywords and of_shapes
  enum class Kind : std::uint8_t { everything, nothing, node, own, value, shapes, both, either, negation };
  struct Set {
    Kind kind;
    std::vector<std::uint32_t> parts;
    std::unique_ptr<ValueSet> shapes = nullptr;
    bool open = false;  // being worked out
    std::optional<bool> empty = {};
  };

  class Opened;

  SetId intern(Kind kind, std::vector<std::uint32_t> parts);
  SetId own_keywords(NodeId node) { return intern(Kind::own, {node}); }
  SetId of_shapes(ValueSet set);
  ValueSet work_out(SetId set);

  const Document& document_;
  Work work_;
  std::vector<Set> sets_;
  std::map<std::pair<Kind, std::vector<std::uint32_t>>, SetId> names_;
  std::vector<const Value*> values_;
  std::vector<ValueSet> given_;
};

}  // namespace thalweg::schema
