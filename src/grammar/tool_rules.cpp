#include "grammar/tool_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "grammar/character_set.hpp"
#include "grammar/json_rules.hpp"
#include "grammar/limits.hpp"
#include "schema/schema.hpp"
#include "text/utf8.hpp"

namespace thalweg::grammar {
namespace {

constexpr std::array<std::string_view, 6> kRemarks = {"title",    "description", "default",
                                                      "examples", "$comment",    "deprecated"};
constexpr int kReferences = 16;  // followed to learn whether an argument may be a string

bool is_remark(std::string_view keyword) {
  return std::find(kRemarks.begin(), kRemarks.end(), keyword) != kRemarks.end();
}

/// What the value of one argument may be: text as it is, and JSON.
struct ValueForms {
  std::vector<std::string> texts;  ///< rules for texts
  std::vector<Json> schemas;       ///< schemas whose values are no strings
};

/// The rules of one tool with a schema.
class ArgumentRules {
 public:
  ArgumentRules(const Json& schema, std::string subject, std::string prefix)
      : schema_(schema), subject_(std::move(subject)), prefix_(std::move(prefix)) {}

  /// Alternatives for the lines between `invoke` and its end; rules they need are appended to `rules`.
  std::string write(std::string& rules) {
    check_object();
    const Json properties = schema_.value("properties", Json::object());
    const Json required = schema_.value("required", Json::array());
    std::vector<std::pair<std::string, bool>> lines;
    for (const auto& [name, schema] : properties.items()) {
      const std::string rule = fmt::format("{}a{}", prefix_, lines.size());
      rules += fmt::format("{} ::= {}\n", rule, argument(name, schema, rules, rule));
      lines.emplace_back(rule, std::find(required.begin(), required.end(), name) != required.end());
    }
    for (const Json& name : required) {
      if (!properties.contains(name.get<std::string>()))
        refuse("required", "names of properties", name.dump());
    }
    return sequences(lines);
  }

 private:
  [[noreturn]] void refuse(const std::string& keyword, const std::string& expected,
                           const std::string& found) const {
    throw InputError(fmt::format("{}: {}", subject_, keyword), expected, found);
  }

  void check_object() const {
    if (!schema_.is_object() || schema_.value("type", Json()) != "object")
      refuse("type", "\"object\" for the arguments of a tool", "something else");
    if (schema_.value("additionalProperties", Json()) != false)
      refuse("additionalProperties", "false for arguments that are held to a schema", "something else");
    for (const auto& [keyword, value] : schema_.items()) {
      const bool known = keyword == "type" || keyword == "properties" || keyword == "required" ||
                         keyword == "additionalProperties" || keyword == "$defs" ||
                         keyword == "definitions" || keyword == "$schema" || is_remark(keyword);
      if (!known) refuse(keyword, "no such keyword for the arguments of a tool", "it");
      if (keyword == "properties" && !value.is_object()) refuse(keyword, "an object", value.type_name());
      if (keyword == "required" &&
          !(value.is_array() &&
            std::all_of(value.begin(), value.end(), [](const Json& n) { return n.is_string(); })))
        refuse(keyword, "a list of names", value.type_name());
    }
  }

  // Lines in declared order, those that are not required also absent; an empty line if there is none.
  static std::string sequences(const std::vector<std::pair<std::string, bool>>& lines) {
    std::vector<std::string> tails(lines.size() + 1);
    for (std::size_t i = lines.size(); i-- > 0;)
      tails[i] = fmt::format("{}{} {}", lines[i].first, lines[i].second ? "" : "?", tails[i + 1]);
    std::string all;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      all += fmt::format("{}{} {}", all.empty() ? "" : " | ", lines[i].first, tails[i + 1]);
      if (lines[i].second) return all;
    }
    return all + (all.empty() ? "\"\\n\"" : " | \"\\n\"");
  }

  std::string argument(const std::string& name, const Json& schema, std::string& rules,
                       const std::string& rule) {
    if (name.empty() || name.find_first_of("\"<>\n\r") != std::string::npos)
      refuse("properties", "names without quotes, angle brackets and line ends", Json(name).dump());
    ValueForms forms;
    find_forms(schema, name, 0, forms);
    std::string values;
    const auto add = [&](const std::string& form) { values += (values.empty() ? "" : " | ") + form; };
    for (const std::string& text : forms.texts) add(fmt::format("\"true\\\">\" {}", text));
    for (std::size_t i = 0; i < forms.schemas.size(); ++i) {
      const std::string root = fmt::format("{}v{}", rule, i);
      rules += json_rules(forms.schemas[i], name, root) + "\n";
      add(fmt::format("\"false\\\">\" {}", root));
    }
    return fmt::format(R"("<" mark {} ({}) "</" mark " parameter>\n")",
                       spell_literal(fmt::format(" parameter name=\"{}\" string=\"", name)), values);
  }

  std::string json_rules(const Json& schema, const std::string& name, const std::string& root) const {
    Json document = schema;
    for (const char* definitions : {"$defs", "definitions"}) {
      if (schema_.contains(definitions)) document[definitions] = schema_[definitions];
    }
    try {
      return schema::to_ebnf(schema::schema_from(document), {schema::Whitespace::natural, root});
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", subject_, name), error.what());
    }
  }

  // The part of `schema` that admits strings becomes text, the other stays a schema.
  void find_forms(const Json& schema, const std::string& name, int depth, ValueForms& forms) const {
    const std::string at = fmt::format("properties: {}", name);
    if (!schema.is_object() || depth > kReferences) refuse(at, "a schema with a type", "another");
    if (schema.contains("$ref")) return find_forms(resolve(schema, at), name, depth + 1, forms);
    if (schema.contains("anyOf")) {
      for (const auto& [keyword, value] : schema.items()) {
        if (keyword != "anyOf" && !is_remark(keyword)) refuse(at, "anyOf alone", keyword);
      }
      for (const Json& branch : schema["anyOf"]) find_forms(branch, name, depth + 1, forms);
      return;
    }
    const Json type = schema.value("type", Json());
    if (type == "string") return add_text(schema, at, forms);
    if (type.is_string()) {
      forms.schemas.push_back(schema);
      return;
    }
    if (!type.is_array()) refuse(at, "a type, $ref or anyOf", "none");
    Json others = schema;
    others["type"] = Json::array();
    for (const Json& one : type) {
      if (one != "string") others["type"].push_back(one);
    }
    if (others["type"].size() < type.size()) add_text(schema, at, forms);
    if (!others["type"].empty()) forms.schemas.push_back(std::move(others));
  }

  const Json& resolve(const Json& schema, const std::string& at) const {
    const Json& reference = schema["$ref"];
    const std::string text = reference.is_string() ? reference.get<std::string>() : "";
    try {
      if (text.rfind("#/", 0) == 0) return schema_.at(Json::json_pointer(text.substr(1)));
    } catch (const Json::exception&) {
      // refused below
    }
    refuse(at, "a $ref into the definitions of the tool", reference.dump());
  }

  void add_text(const Json& schema, const std::string& at, ValueForms& forms) const {
    std::string rule = "text";
    for (const auto& [keyword, value] : schema.items()) {
      if (keyword == "type" || is_remark(keyword)) continue;
      if (keyword != "enum" || !value.is_array())
        refuse(at, "no condition but enum for a string argument, which is free text", keyword);
      rule.clear();
      for (const Json& text : value) {
        if (text.is_string()) rule += (rule.empty() ? "" : " | ") + spell_literal(text.get<std::string>());
      }
      if (rule.empty()) return;
      rule = fmt::format("({})", rule);
    }
    forms.texts.push_back(rule);
  }

  const Json& schema_;
  std::string subject_;
  std::string prefix_;
};

void check_tools(const Constraint& constraint, std::int32_t markup_token, const std::string& subject) {
  if (markup_token < 0) throw InputError(subject, "a tokenizer with the token of tool markup", "none");
  if (constraint.tools.empty()) throw InputError(subject, "at least one tool", "none");
  if (constraint.tools.size() > GrammarLimits::tools) {
    throw InputError(subject, fmt::format("at most {}", GrammarLimits::tools),
                     fmt::format("{}", constraint.tools.size()));
  }
}

}  // namespace

std::string tool_rules(const Constraint& constraint, std::int32_t markup_token, const std::string& subject) {
  check_tools(constraint, markup_token, subject);
  std::string rules;
  std::string free_names;
  std::string invokes;
  for (std::size_t i = 0; i < constraint.tools.size(); ++i) {
    const ToolForm& tool = constraint.tools[i];
    if (!tool.parameters) {
      free_names += (free_names.empty() ? "" : " | ") + spell_literal(tool.name);
      continue;
    }
    const std::string where = fmt::format("{}: {}", subject, tool.name);
    const Json schema = parse_json(*tool.parameters, where);
    const std::string lines = ArgumentRules(schema, where, fmt::format("t{}", i)).write(rules);
    invokes +=
        fmt::format("{}{} ({})", invokes.empty() ? "" : " | ", spell_literal(tool.name + "\">\n"), lines);
  }
  if (!free_names.empty()) {
    invokes += fmt::format(R"({}({}) "\">\n" (parameter+ | "\n"))", invokes.empty() ? "" : " | ", free_names);
  }
  return fmt::format(R"(root ::= {}invoke ("\n" invoke)* "\n</" mark " calls>"
mark ::= Token({})
invoke ::= "<" mark " invoke name=\"" ({}) "</" mark " invoke>"
parameter ::= "<" mark " parameter name=\"" [^"<>\n\r] [^"<>\n\r]* "\" string=\"" value "</" mark " parameter>\n"
value ::= "true\">" text | "false\">" json_value
text ::= [^]*
{}{})",
                     constraint.calls_required ? "" : "\" calls>\\n\" ", markup_token, invokes, kJsonRules,
                     rules);
}

}  // namespace thalweg::grammar
