// The set that one schema of a document stands for.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "schema/sets.hpp"

namespace thalweg::schema {

/// No keyword but `$ref`.
bool only_refers(const Node& node);
bool says_nothing(const Node& node);

/// Throws SchemaError naming the keyword whose set cannot be held.
class NodeShapes {
 public:
  NodeShapes(const Document& document, Sets& sets) : document_(document), sets_(sets) {}

  ValueSet of_node(NodeId id);
  /// Without the schemas that apply to the same value and without the unevaluated keywords.
  ValueSet of_own_keywords(NodeId id);

 private:
  /// One way in which a schema can hold, and what it has then looked at.
  struct Way {
    SetId set = kEverything;
    Language members;       ///< names
    std::size_t items = 0;  ///< the first ones
    bool all_items = false;
    std::vector<SetId> found;  ///< items in one of these sets
  };

  template <class Operation>
  auto guarded(const char* keyword, const Node& node, const Operation& operation);

  Language numbers_of(const Node& node);
  StringShape strings_of(const Node& node);
  ArrayShape arrays_of(const Node& node);
  Language names_in(SetId set);
  ObjectShape objects_of(const Node& node);
  SetId value_by_pattern(const Node& node, std::string_view name, SetId declared);
  std::vector<Others> others_of(const Node& node);
  SetId listed(const Node& node);
  void restrict_dependent(ValueSet& set, const Node& node);
  SetId in_place(const Node& node);
  SetId exactly_one(const Node& node);
  SetId dependent(const NamedNode& next);
  SetId objects_with(const std::string& name, bool present);

  std::vector<Way> ways(NodeId id);
  Way own_way(const Node& node, NodeId id);
  std::vector<Way> joined(const std::vector<Way>& a, const std::vector<Way>& b);
  std::vector<Way> branches(const Node& node);
  std::vector<Way> any_branches(const Node& node);
  Way with_unevaluated(Way way, const Node& node);

  const Document& document_;
  Sets& sets_;
};

}  // namespace thalweg::schema
