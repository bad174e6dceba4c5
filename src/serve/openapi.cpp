#include "serve/openapi.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "serve/routes.hpp"

namespace thalweg::serve {
namespace {

Json parse(std::string_view text, const char* subject) {
  return parse_json(text, subject, {.unique_keys = true});
}

Json content(const std::string& media, Json schema) {
  return {{media, {{"schema", std::move(schema)}}}};
}

Json reference(const Json& name) {
  return {{"$ref", "#/components/schemas/" + name.get<std::string>()}};
}

Json success(const Json& operation) {
  const std::string media = operation.value("media", "application/json");
  Json reply = {{"description", "Success"}};
  reply["content"] =
      content(media, operation.contains("reply") ? reference(operation["reply"]) : Json{{"type", "string"}});
  if (operation.contains("events")) {
    Json data = {{"type", "string"}, {"contentMediaType", "application/json"}};
    data["contentSchema"] = reference(operation["events"]);
    if (operation.value("done", false)) data = {{"anyOf", {{{"const", "[DONE]"}}, std::move(data)}}};
    reply["content"].update(content(
        "text/event-stream", {{"type", "object"},
                              {"description", "One event; Chat Completions and Completions end with [DONE]"},
                              {"required", {"data"}},
                              {"properties", {{"event", {{"type", "string"}}}, {"data", std::move(data)}}}}));
  }
  return reply;
}

// What one method of one path does.
Json describe(const Json& operation, const Route& route, const std::string& id, bool keys) {
  Json out = {{"operationId", id}, {"summary", operation["summary"]}};
  if (operation.contains("name")) {
    out["parameters"] = Json::array({{{"name", operation["name"]},
                                      {"in", "path"},
                                      {"required", true},
                                      {"schema", {{"type", "string"}, {"minLength", 1}}}}});
  }
  if (operation.contains("request")) {
    out["requestBody"] = {{"required", true},
                          {"content", content("application/json", reference(operation["request"]))}};
  }
  const char* error = route.shape == ErrorShape::anthropic ? "MessagesError" : "Error";
  out["responses"] = {{"200", success(operation)}};
  if (operation.contains("unready")) {
    out["responses"]["503"] = {{"description", "Not yet, or no longer"},
                               {"content", content("application/json", reference(operation["unready"]))}};
  }
  out["responses"]["default"] = {{"description", "An error, its status as docs/serving.md says"},
                                 {"content", content("application/json", reference(error))}};
  if (keys && !route.open) {
    out["security"] = Json::array({{{"bearer", Json::array()}}, {{"header", Json::array()}}});
  }
  return out;
}

Json describe_paths(const Json& operations, bool keys) {
  Json paths = Json::object();
  std::map<std::string, int> seen;
  const auto add = [&](const std::string& path, const std::string& key, const char* method,
                       const Route& route) {
    const Json& operation = operations.at(key);
    // Names of operations are unique; what several paths lead to is numbered.
    std::string id = fmt::format("{}_{}", method, route.name);
    if (operation.contains("name")) id += "_by_name";
    if (const int before = seen[id]++; before > 0) id += fmt::format("_{}", before + 1);
    paths[path][method] = describe(operation, route, id, keys);
  };
  for (const PathRoute& entry : all_routes()) {
    std::string path(entry.path);
    std::string key(entry.route.name);
    if (entry.is_folder) {
      key += " NAME";
      path += fmt::format("{{{}}}", operations.at(key).at("name").get<std::string>());
    }
    add(path, key, entry.route.method == "GET" ? "get" : "post", entry.route);
    if (entry.route.deletes) add(path, key + " DELETE", "delete", entry.route);
  }
  return paths;
}

Json describe_schemas(const wire::Policy& policy) {
  Json schemas = parse(openapi_requests(), "openapi_requests.json");
  const Json replies = parse(openapi_replies(), "openapi_replies.json");
  for (const auto& [name, schema] : replies.items()) schemas[name] = schema;
  schemas["ServedModel"]["enum"] = policy.model_names;
  schemas["Limit"]["maximum"] = policy.max_tokens_bound;
  schemas["CompletionsRequest"]["properties"]["min_tokens"]["maximum"] = policy.max_tokens_bound;
  for (const char* request : {"ChatMembers", "CompletionsRequest"}) {
    schemas[request]["properties"]["n"]["maximum"] = policy.max_choices;
  }
  return schemas;
}

}  // namespace

Json openapi(const std::string& version, const wire::Policy& policy, bool keys) {
  Json document = {{"openapi", "3.1.0"},
                   {"info",
                    {{"title", "Thalweg"},
                     {"version", version.empty() ? "unknown" : version},
                     {"description",
                      "A member that is null counts as absent. Members that are not listed have no effect "
                      "and are named in the "
                      "header x-ignored-fields of the answer, or are refused by name if honouring them would "
                      "change it."}}},
                   {"paths", describe_paths(parse(openapi_operations(), "openapi_operations.json"), keys)},
                   {"components", {{"schemas", describe_schemas(policy)}}}};
  if (keys) {
    document["components"]["securitySchemes"] = {
        {"bearer", {{"type", "http"}, {"scheme", "bearer"}}},
        {"header", {{"type", "apiKey"}, {"in", "header"}, {"name", "x-api-key"}}}};
  }
  return document;
}

}  // namespace thalweg::serve
