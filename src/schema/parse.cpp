// From JSON to the nodes of a document: every keyword is read, known to change nothing, or refused.
#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "schema/document.hpp"
#include "schema/formats.hpp"
#include "schema/references.hpp"
#include "schema/regex.hpp"
#include "schema/schema.hpp"

namespace thalweg::schema {
namespace {

// Remarks, which by the standard say nothing about a value. Those beginning with "x-" join them.
constexpr std::array<std::string_view, 11> kRemarks{
    "$comment", "default",   "deprecated",      "description",      "examples",     "readOnly",
    "title",    "writeOnly", "contentEncoding", "contentMediaType", "contentSchema"};

constexpr std::array<std::string_view, 3> kDialects{"json-schema.org/draft/2020-12/schema",
                                                    "json-schema.org/draft/2019-09/schema",
                                                    "json-schema.org/draft-07/schema"};

constexpr std::array<std::pair<std::string_view, unsigned>, 7> kTypes{{{"null", kNull},
                                                                       {"boolean", kBoolean},
                                                                       {"integer", kInteger},
                                                                       {"number", kNumber | kInteger},
                                                                       {"string", kString},
                                                                       {"array", kArray},
                                                                       {"object", kObject}}};

std::string pointer_token(std::string_view name) {
  std::string token;
  for (const char c : name) token += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return token;
}

std::string shown(const Value& value) {
  std::string text = to_text(value);
  if (text.size() > 60) text = text.substr(0, 60) + "...";
  return text;
}

class Reader {
 public:
  Reader(Document& document, ParseOptions options) : document_(document), options_(options) {}

  void read_all() {
    references_.add_resource("", document_.text);
    read(document_.text, "", "");
    for (const Pending& pending : pending_) resolve(pending);
    refuse_cycles();
  }

 private:
  struct Pending {
    NodeId node;
    std::string base;
    std::string reference;
  };
  // Where a schema is being read.
  struct Place {
    const Value& value;
    const std::string& path;
    std::string base;
    NodeId id;
  };

  [[noreturn]] static void fail(std::string_view keyword, const std::string& path,
                                const std::string& problem) {
    throw SchemaError(std::string(keyword), path, problem);
  }
  [[noreturn]] static void fail(std::string_view keyword, const Place& place, std::string_view expected,
                                const Value& found) {
    fail(keyword, place.path, fmt::format("expected {}, found {}", expected, shown(found)));
  }

  NodeId read(const Value& value, const std::string& path, const std::string& base) {
    if (document_.nodes.size() >= SchemaLimits::nodes)
      fail("", path, fmt::format("more than {} schemas", SchemaLimits::nodes));
    const auto id = static_cast<NodeId>(document_.nodes.size());
    document_.nodes.emplace_back();
    references_.add_schema(value, id);
    Node node;
    node.path = path;
    Place place{value, path, base, id};
    if (const auto* always = value.as<bool>()) {
      node.always = *always;
    } else if (const auto* members = value.as<Object>()) {
      read_identity(place);
      for (const auto& [keyword, content] : *members) read_keyword(node, place, keyword, content);
      check(node);
    } else {
      fail("", path, fmt::format("expected a schema (an object or a boolean), found {}", shown(value)));
    }
    document_.nodes[id] = std::move(node);
    return id;
  }

  void read_identity(Place& place) {
    if (const Value* id = place.value.find("$id")) {
      const std::string& uri = text(place, "$id", *id);
      if (const auto hash = uri.find('#'); hash != uri.npos && hash + 1 != uri.size())
        fail("$id", place, "an identifier without fragment", *id);
      place.base = resolve_uri(place.base, uri);
      if (!references_.add_resource(place.base, place.value) && place.id != 0)
        fail("$id", place, "an identifier that stands once", *id);
    }
    for (const char* keyword : {"$anchor", "$dynamicAnchor"}) {
      const Value* anchor = place.value.find(keyword);
      if (anchor != nullptr && !references_.add_anchor(place.base, text(place, keyword, *anchor), place.id))
        fail(keyword, place, "an anchor that stands once", *anchor);
    }
  }

  void read_keyword(Node& node, const Place& place, const std::string& keyword, const Value& value) {
    using Read = void (Reader::*)(Node&, const Place&, const Value&);
    static const std::unordered_map<std::string_view, Read> readers{
        {"$ref", &Reader::read_reference},
        {"$schema", &Reader::read_dialect},
        {"enum", &Reader::read_enum},
        {"format", &Reader::read_format},
        {"pattern", &Reader::read_pattern},
        {"patternProperties", &Reader::read_pattern_properties},
        {"dependentRequired", &Reader::read_dependent_required},
        {"type", &Reader::read_type},
    };
    static const std::unordered_map<std::string_view, std::optional<NodeId> Node::*> schemas{
        {"items", &Node::items},
        {"contains", &Node::contains},
        {"unevaluatedItems", &Node::unevaluated_items},
        {"additionalProperties", &Node::additional_properties},
        {"propertyNames", &Node::property_names},
        {"unevaluatedProperties", &Node::unevaluated_properties},
        {"not", &Node::negated},
        {"if", &Node::condition},
        {"then", &Node::consequence},
        {"else", &Node::alternative},
    };
    static const std::unordered_map<std::string_view, std::vector<NodeId> Node::*> schema_lists{
        {"allOf", &Node::all_of},
        {"anyOf", &Node::any_of},
        {"oneOf", &Node::one_of},
        {"prefixItems", &Node::prefix_items}};
    static const std::unordered_map<std::string_view, std::vector<NamedNode> Node::*> schema_maps{
        {"properties", &Node::properties}, {"dependentSchemas", &Node::dependent_schemas}};
    static const std::unordered_map<std::string_view, std::optional<Decimal> Node::*> numbers{
        {"minimum", &Node::minimum},
        {"maximum", &Node::maximum},
        {"exclusiveMinimum", &Node::exclusive_minimum},
        {"exclusiveMaximum", &Node::exclusive_maximum},
        {"multipleOf", &Node::multiple_of}};
    static const std::unordered_map<std::string_view, std::size_t Node::*> least{
        {"minLength", &Node::min_length},
        {"minItems", &Node::min_items},
        {"minContains", &Node::min_contains},
        {"minProperties", &Node::min_properties}};
    static const std::unordered_map<std::string_view, std::optional<std::size_t> Node::*> most{
        {"maxLength", &Node::max_length},
        {"maxItems", &Node::max_items},
        {"maxContains", &Node::max_contains},
        {"maxProperties", &Node::max_properties}};

    if (const auto found = readers.find(keyword); found != readers.end()) {
      (this->*found->second)(node, place, value);
    } else if (const auto schema = schemas.find(keyword); schema != schemas.end()) {
      if (keyword == "items" && value.as<Array>() != nullptr)
        fail(keyword, place, "a schema (a list of them is called prefixItems)", value);
      node.*schema->second = read(value, inside(place, keyword), place.base);
    } else if (const auto list = schema_lists.find(keyword); list != schema_lists.end()) {
      node.*list->second = read_list(place, keyword, value);
    } else if (const auto map = schema_maps.find(keyword); map != schema_maps.end()) {
      node.*map->second = read_map(place, keyword, value);
    } else if (const auto number = numbers.find(keyword); number != numbers.end()) {
      node.*number->second = read_number(place, keyword, value);
    } else if (const auto low = least.find(keyword); low != least.end()) {
      node.*low->second = count(place, keyword, value);
    } else if (const auto high = most.find(keyword); high != most.end()) {
      node.*high->second = count(place, keyword, value);
    } else {
      read_other(node, place, keyword, value);
    }
  }

  void read_other(Node& node, const Place& place, const std::string& keyword, const Value& value) {
    if (keyword == "const") {
      node.constant = value;
    } else if (keyword == "required") {
      node.required = names(place, keyword, value);
    } else if (keyword == "uniqueItems") {
      if (value.as<bool>() == nullptr) fail(keyword, place, "a boolean", value);
      node.unique_items = *value.as<bool>();
    } else if (keyword == "$defs" || keyword == "definitions") {
      read_map(place, keyword, value);
    } else if (keyword == "$id" || keyword == "$anchor" || keyword == "$dynamicAnchor") {
      // Read with the identity of the schema.
    } else if (keyword == "$vocabulary") {
      fail(keyword, place.path, "vocabularies are not supported");
    } else if (!keyword.starts_with("x-") &&
               std::find(kRemarks.begin(), kRemarks.end(), keyword) == kRemarks.end()) {
      fail(keyword, place.path, "this keyword is not supported");
    }
  }

  static std::string inside(const Place& place, std::string_view name) {
    return fmt::format("{}/{}", place.path, pointer_token(name));
  }

  static const std::string& text(const Place& place, std::string_view keyword, const Value& value) {
    if (value.as<std::string>() == nullptr) fail(keyword, place, "a string", value);
    return *value.as<std::string>();
  }

  static Decimal read_number(const Place& place, std::string_view keyword, const Value& value) {
    const auto* number = value.as<Decimal>();
    if (number == nullptr) fail(keyword, place, "a number", value);
    if (keyword == "multipleOf" && (number->negative || number->is_zero()))
      fail(keyword, place, "a number above 0", value);
    if (keyword == "multipleOf" && number->digits.size() > 18)
      fail(keyword, place, "a number of at most 18 digits", value);
    return *number;
  }

  static std::size_t count(const Place& place, std::string_view keyword, const Value& value) {
    const auto* number = value.as<Decimal>();
    if (number == nullptr || number->negative || !number->is_integer())
      fail(keyword, place, "an integer not below 0", value);
    return static_cast<std::size_t>(to_integer(*number).value_or(1'000'000'000'000'000'000));
  }

  static std::vector<std::string> names(const Place& place, std::string_view keyword, const Value& value) {
    const auto* list = value.as<Array>();
    if (list == nullptr) fail(keyword, place, "a list of names", value);
    std::vector<std::string> result;
    std::unordered_set<std::string> seen;
    for (const Value& name : *list) {
      if (name.as<std::string>() == nullptr) fail(keyword, place, "a list of names", value);
      if (seen.insert(*name.as<std::string>()).second) result.push_back(*name.as<std::string>());
    }
    return result;
  }

  std::vector<NodeId> read_list(const Place& place, const std::string& keyword, const Value& value) {
    const auto* list = value.as<Array>();
    if (list == nullptr || list->empty()) fail(keyword, place, "a list of schemas, not empty", value);
    std::vector<NodeId> nodes;
    for (std::size_t i = 0; i < list->size(); ++i)
      nodes.push_back(read((*list)[i], fmt::format("{}/{}", inside(place, keyword), i), place.base));
    return nodes;
  }

  std::vector<NamedNode> read_map(const Place& place, const std::string& keyword, const Value& value) {
    const auto* map = value.as<Object>();
    if (map == nullptr) fail(keyword, place, "an object whose members are schemas", value);
    std::vector<NamedNode> nodes;
    for (const auto& [name, schema] : *map)
      nodes.push_back({name, read(schema, inside(place, keyword) + "/" + pointer_token(name), place.base)});
    return nodes;
  }

  Language language(const Place& place, std::string_view keyword, std::string_view regex) {
    try {
      return search_language(regex, document_.work);
    } catch (const RegexError& error) {
      fail(keyword, place.path,
           fmt::format("{} in \"{}\" is not supported", error.what(), regex.substr(0, 80)));
    } catch (const TooLarge&) {
      fail(keyword, place.path, fmt::format("the expression \"{}\" is too large", regex.substr(0, 80)));
    }
  }

  void read_pattern(Node& node, const Place& place, const Value& value) {
    node.pattern = language(place, "pattern", text(place, "pattern", value));
  }

  void read_format(Node& node, const Place& place, const Value& value) {
    const std::string& name = text(place, "format", value);
    if (!options_.assert_formats) return;
    const auto pattern = format_pattern(name);
    if (!pattern) fail("format", place.path, fmt::format("the format \"{}\" is not supported", name));
    const auto [found, fresh] = formats_.emplace(name, Language());
    if (fresh) found->second = language(place, "format", *pattern);
    node.format = found->second;
  }

  void read_pattern_properties(Node& node, const Place& place, const Value& value) {
    for (const NamedNode& member : read_map(place, "patternProperties", value)) {
      node.pattern_properties.push_back(
          {member.name, language(place, "patternProperties", member.name), member.node});
    }
  }

  void read_dependent_required(Node& node, const Place& place, const Value& value) {
    const auto* map = value.as<Object>();
    if (map == nullptr) fail("dependentRequired", place, "an object whose members are lists of names", value);
    for (const auto& [name, list] : *map)
      node.dependent_required.emplace_back(name, names(place, "dependentRequired", list));
  }

  void read_type(Node& node, const Place& place, const Value& value) {
    Array list;
    if (const auto* given = value.as<Array>()) {
      list = *given;
    } else {
      list = {value};
    }
    node.types = 0;
    for (const Value& name : list) {
      const auto* known = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& type) {
        return name.as<std::string>() != nullptr && *name.as<std::string>() == type.first;
      });
      if (known == kTypes.end()) fail("type", place, "the name of a type or a list of them", value);
      node.types |= known->second;
    }
    if (list.empty()) fail("type", place, "the name of a type or a list of them", value);
  }

  void read_enum(Node& node, const Place& place, const Value& value) {
    const auto* list = value.as<Array>();
    if (list == nullptr) fail("enum", place, "a list of values", value);
    enum_values_ += list->size();
    if (enum_values_ > SchemaLimits::enum_values)
      fail("enum", place.path, fmt::format("more than {} values in all", SchemaLimits::enum_values));
    node.enumeration = *list;
  }

  void read_reference(Node&, const Place& place, const Value& value) {
    pending_.push_back({place.id, place.base, text(place, "$ref", value)});
  }

  void read_dialect(Node&, const Place& place, const Value& value) {
    std::string_view uri = text(place, "$schema", value);
    if (uri.ends_with('#')) uri.remove_suffix(1);
    if (uri.starts_with("https://")) uri.remove_prefix(8);
    if (uri.starts_with("http://")) uri.remove_prefix(7);
    if (std::find(kDialects.begin(), kDialects.end(), uri) == kDialects.end())
      fail("$schema", place, "draft 2020-12 (2019-09 and draft-07 are read as such)", value);
  }

  static void check(Node& node) {
    // Without what they refer to these say nothing.
    if (!node.condition) node.consequence = node.alternative = std::nullopt;
    if (!node.contains) {
      node.min_contains = 0;
      node.max_contains = std::nullopt;
    }
  }

  void resolve(const Pending& pending) {
    Node& node = document_.nodes[pending.node];
    node.reference = references_.find(pending.base, pending.reference);
    if (!node.reference)
      fail("$ref", node.path, fmt::format("\"{}\" is no schema of this document", pending.reference));
  }

  // A schema that applies itself to the same value says nothing that ends.
  void refuse_cycles() const {
    enum class Mark : unsigned char { fresh, open, done };
    std::vector<Mark> marks(document_.nodes.size(), Mark::fresh);
    std::vector<std::pair<NodeId, std::vector<NodeId>>> stack;
    for (NodeId root = 0; root < marks.size(); ++root) {
      if (marks[root] != Mark::fresh) continue;
      marks[root] = Mark::open;
      stack.emplace_back(root, document_.nodes[root].in_place());
      while (!stack.empty()) {
        auto& [node, next] = stack.back();
        if (next.empty()) {
          marks[node] = Mark::done;
          stack.pop_back();
          continue;
        }
        const NodeId child = next.back();
        next.pop_back();
        if (marks[child] == Mark::open)
          fail("$ref", document_.nodes[child].path,
               "the schema applies itself to the same value without end");
        if (marks[child] == Mark::done) continue;
        marks[child] = Mark::open;
        stack.emplace_back(child, document_.nodes[child].in_place());
        if (stack.size() > kInPlaceDepth)
          fail("$ref", document_.nodes[child].path,
               fmt::format("more than {} references in a row", kInPlaceDepth));
      }
    }
  }

  static constexpr std::size_t kInPlaceDepth = 200;

  Document& document_;
  ParseOptions options_;
  References references_;
  std::vector<Pending> pending_;
  std::unordered_map<std::string, Language> formats_;
  std::size_t enum_values_ = 0;
};

Schema read_document(Value value, ParseOptions options) {
  auto document = std::make_shared<Document>();
  document->text = std::move(value);
  document->work = Work(SchemaLimits::work);
  Reader(*document, options).read_all();
  return Schema(std::move(document));
}

}  // namespace

SchemaError::SchemaError(std::string keyword, std::string path, const std::string& problem)
    : InputError(fmt::format("schema at \"{}\"{}{}", path, keyword.empty() ? "" : ": ", keyword), problem),
      keyword_(std::move(keyword)),
      path_(std::move(path)) {}

std::vector<NodeId> Node::in_place() const {
  std::vector<NodeId> nodes;
  for (const auto* list : {&all_of, &any_of, &one_of}) nodes.insert(nodes.end(), list->begin(), list->end());
  for (const auto& one : {reference, negated, condition, consequence, alternative}) {
    if (one) nodes.push_back(*one);
  }
  for (const NamedNode& dependent : dependent_schemas) nodes.push_back(dependent.node);
  return nodes;
}

Schema parse_schema(std::string_view json, ParseOptions options) {
  if (json.size() > SchemaLimits::text_bytes)
    throw InputError("schema", fmt::format("at most {} bytes", SchemaLimits::text_bytes),
                     fmt::format("{}", json.size()));
  return read_document(read_value(json, "schema", SchemaLimits::depth), options);
}

Schema schema_from(const Json& json, ParseOptions options) {
  return read_document(to_value(json), options);
}

}  // namespace thalweg::schema
