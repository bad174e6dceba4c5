// JSON Schema (draft 2020-12) for structured outputs: honoured or refused, never dropped.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/json.hpp"

namespace thalweg::schema {

/// A schema, or a combination of its keywords, that is not supported or is not JSON Schema.
class SchemaError : public InputError {
 public:
  /// `path`: JSON Pointer to the schema that holds `keyword` ("" is the root). `keyword` is empty if the
  /// schema as a whole is at fault.
  SchemaError(std::string keyword, std::string path, const std::string& problem);
  const std::string& keyword() const noexcept { return keyword_; }
  const std::string& path() const noexcept { return path_; }

 private:
  std::string keyword_;
  std::string path_;
};

/// How large a schema may be; what is larger is refused within a second (docs/structured_outputs.md).
struct SchemaLimits {
  static constexpr std::size_t text_bytes = 1 << 20;
  static constexpr std::size_t depth = 64;           ///< of nested arrays and objects in the schema's text
  static constexpr std::size_t nodes = 10'000;       ///< schemas inside the schema
  static constexpr std::size_t enum_values = 5'000;  ///< in all
  static constexpr std::size_t pattern_bytes = 4096;
  static constexpr std::size_t states = 4'000;    ///< of an automaton for one string or number
  static constexpr std::size_t work = 4'000'000;  ///< steps spent on automata, all together
  static constexpr std::size_t shapes = 512;      ///< alternatives one schema stands for
  static constexpr std::size_t sets = 20'000;     ///< combinations of schemas, all together
  static constexpr std::size_t rules = 20'000;    ///< of the grammar
  static constexpr std::size_t repetitions =
      10'000;  ///< of characters or items; longer ones are not generated
};

struct ParseOptions {
  /// true: `format` is a condition, and formats that are not known are refused. false: it is a remark, as
  /// draft 2020-12 has it without the format-assertion vocabulary.
  bool assert_formats = true;
};

struct Document;

/// A schema that was read and understood. Immutable, cheap to copy; any thread may use it.
class Schema {
 public:
  explicit Schema(std::shared_ptr<const Document> document) : document_(std::move(document)) {}
  const Document& document() const { return *document_; }

 private:
  std::shared_ptr<const Document> document_;
};

/// Reads a schema. Throws SchemaError naming keyword and place for what is malformed, unknown or unsupported,
/// InputError("schema", ...) for text that is not JSON or is nested too deeply.
Schema parse_schema(std::string_view json, ParseOptions options = {});
Schema schema_from(const Json& json, ParseOptions options = {});

/// The first place found where a value breaks a schema.
struct Violation {
  std::string path;     ///< JSON Pointer into the value
  std::string keyword;  ///< the keyword that does not hold; "false" for the schema `false`
  std::string message;
};

/// Whether `value` is valid, exactly as the standard says: members in any order, numbers by their value.
/// nullopt: valid. Linear in the value for schemas without uniqueItems.
std::optional<Violation> validate(const Schema& schema, const Json& value);
/// The same for JSON text, whose numbers are then compared as exact decimals (`Json` rounds those of more
/// than 64 bits). Throws InputError("value", ...) for text that is not JSON.
std::optional<Violation> validate_text(const Schema& schema, std::string_view text);

enum class Whitespace {
  compact,  ///< none
  natural,  ///< after `{ [ , :` and before `} ]`: nothing, one blank, or a line feed and up to 32 blanks
};

struct EbnfOptions {
  Whitespace whitespace = Whitespace::natural;
  /// Name of the first rule; the other rules are called "<root>_..." so that grammars can be joined.
  std::string root = "root";
};

/// A grammar in xgrammar's EBNF whose texts are JSON values valid for `schema`. Of several spellings of one
/// value it has the canonical one (docs/structured_outputs.md): declared properties in declared order, plain
/// decimal numbers, escapes only where JSON needs them. Throws SchemaError for combinations that no grammar
/// of bearable size holds and for schemas that no value satisfies.
std::string to_ebnf(const Schema& schema, const EbnfOptions& options = {});

}  // namespace thalweg::schema
