// Names of schemas inside a document: `$id`, `$anchor`, JSON Pointers, and what `$ref` means.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "schema/document.hpp"

namespace thalweg::schema {

/// `reference` seen from `base`, as RFC 3986 resolves it.
std::string resolve_uri(std::string_view base, std::string_view reference);

/// Knows where every schema of a document stands. `Value`s are those of the document and must stay in place.
class References {
 public:
  /// The resource with this identifier begins at `root`. false: there is one already.
  bool add_resource(const std::string& uri, const Value& root);
  /// false: there is one already.
  bool add_anchor(const std::string& base, const std::string& name, NodeId node);
  void add_schema(const Value& place, NodeId node) { nodes_.emplace(&place, node); }

  /// The schema that `reference` means in a schema with the identifier `base`.
  std::optional<NodeId> find(const std::string& base, std::string_view reference) const;

 private:
  std::unordered_map<std::string, const Value*> resources_;
  std::unordered_map<std::string, NodeId> anchors_;
  std::unordered_map<const Value*, NodeId> nodes_;
};

}  // namespace thalweg::schema
