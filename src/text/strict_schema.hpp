// The subset of JSON Schema that "strict" tools and response formats are rewritten to.
#pragma once

#include <string>

#include "base/error.hpp"
#include "base/json.hpp"

namespace thalweg::text {

/// A schema that is not one, or that the strict subset cannot hold. `what()` is the whole message for the
/// client.
class SchemaError : public Error {
 public:
  explicit SchemaError(const std::string& message) : Error(Fault::input, message) {}
};

/// `schema` in the strict subset, keywords in the subset's order; what the subset lacks (lengths, titles,
/// numeric enums, ...) is dropped. Objects are closed and all their properties required. Definitions
/// (`$defs`, `definitions`) move to the subset's `$def`, and references follow them. Throws SchemaError if an
/// object leaves out a required property, is open, or (below the root) has no properties, if a schema has no
/// type, if an array has no items, for formats beyond email, hostname, ipv4, ipv6 and uuid, and for
/// references to definitions that do not exist.
Json strict_schema(const Json& schema);

/// Throws SchemaError naming the place (JSON Pointer) and the keyword if `schema` breaks the form of JSON
/// Schema: a keyword with a value of the wrong kind, an unknown type name, a negative count.
void check_schema_form(const Json& schema);

}  // namespace thalweg::text
