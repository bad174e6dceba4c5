// The OpenAPI document says what the service takes: checked by asking the service.
#include "serve/openapi.hpp"

#include <set>

#include "serve/routes.hpp"
#include "serve/service_fixture.hpp"
#include "support/temporary_folder.hpp"

namespace thalweg::testing {
namespace {

const Json& document() {
  static const Json json = HttpClient(RunningService().server.port()).get("/openapi.json").json();
  return json;
}

const Json& resolve(const Json& schema) {
  const auto found = schema.find("$ref");
  if (found == schema.end()) return schema;
  const std::string name = found->get<std::string>().substr(std::string("#/components/schemas/").size());
  return resolve(document()["components"]["schemas"].at(name));
}

std::string type_of(const Json& value) {
  if (value.is_number_integer()) return "integer";
  return value.is_number() ? "number" : value.type_name();
}

// The JSON types a schema lets through.
std::set<std::string> types_of(const Json& given) {
  const Json& schema = resolve(given);
  std::set<std::string> types;
  const auto add = [&](const Json& inner) { types.merge(types_of(inner)); };
  if (schema.contains("anyOf") && !schema.contains("type")) {
    for (const Json& inner : schema["anyOf"]) add(inner);
  } else if (schema.contains("enum")) {
    for (const Json& value : schema["enum"]) types.insert(type_of(value));
  } else if (schema.contains("const")) {
    types.insert(type_of(schema["const"]));
  } else if (schema.at("type").is_array()) {
    for (const Json& type : schema["type"]) types.insert(type.get<std::string>());
  } else {
    types.insert(schema["type"].get<std::string>());
  }
  return types;
}

std::string example_text(const Json& schema) {
  const std::string pattern = schema.value("pattern", "");
  if (pattern == "^claude") return "claude-x";
  return pattern.starts_with("^([1-9]") ? "7" : "a";
}

// Some value the schema lets through, and not null.
Json example(const Json& given) {
  const Json& schema = resolve(given);
  if (schema.contains("anyOf") && !schema.contains("type")) {
    const Json& first = schema["anyOf"][0];
    return example(types_of(first) == std::set<std::string>{"null"} ? schema["anyOf"][1] : first);
  }
  if (schema.contains("enum")) return schema["enum"][0];
  if (schema.contains("const")) return schema["const"];
  const std::set<std::string> types = types_of(schema);
  if (types.contains("string")) return example_text(schema);
  if (types.contains("boolean")) return true;
  if (types.contains("integer")) return schema.value("minimum", 1);
  if (types.contains("number")) return schema.value("maximum", 1.0);
  if (types.contains("array")) return Json::array({example(schema["items"])});
  Json object = Json::object();
  for (const Json& name : schema.value("required", Json::array())) {
    object[name.get<std::string>()] = example(schema["properties"].at(name.get<std::string>()));
  }
  return object;
}

struct Api {
  std::string path;
  std::string schema;
  Json body;                      ///< the least that is accepted
  std::set<std::string> refused;  ///< members that are refused by name

  const Json& properties() const { return document()["components"]["schemas"].at(schema)["properties"]; }
};

std::vector<Api> apis() {
  const Json messages = Json::array({{{"role", "user"}, {"content", "q"}}});
  const Json off = {{"type", "disabled"}};
  return {
      {"/v1/chat/completions",
       "ChatMembers",
       {{"model", "deepseek-flash"}, {"messages", messages}, {"thinking", off}},
       {"functions", "function_call", "audio", "logit_bias"}},
      {"/v1/responses",
       "ResponsesRequest",
       {{"model", "deepseek-flash"}, {"input", "q"}, {"thinking", off}},
       {"conversation", "prompt", "background"}},
      {"/v1/messages",
       "MessagesRequest",
       {{"model", "claude-x"}, {"messages", messages}, {"thinking", off}},
       {}},
      {"/v1/completions", "CompletionsRequest", {{"model", "deepseek-flash"}, {"prompt", "q"}}, {}},
  };
}

// What a member needs beside it.
Json with_companions(Json body, const std::string& name) {
  if (name == "stream_options") body["stream"] = true;
  if (name == "top_logprobs") body["logprobs"] = true;
  if (name == "continue_final_message") body["messages"].push_back({{"role", "assistant"}, {"content", "a"}});
  return body;
}

const std::vector<Json>& one_of_each_type() {
  static const std::vector<Json> values = {"zz", 5.5, true, Json::array({5}), Json{{"zz", 5}}};
  return values;
}

class OpenApi : public ::testing::Test {
 protected:
  RunningService running{[] {
    serve::ServiceOptions options;
    options.policy.max_choices = 4;
    return options;
  }()};
  HttpClient client{running.server.port()};

  ClientReply post(const Api& api, const Json& body) { return client.post(api.path, to_text(body)); }

  static bool lists(const ClientReply& reply, const std::string& name) {
    const auto header = reply.headers.find("x-ignored-fields");
    return header != reply.headers.end() &&
           (", " + header->second + ", ").find(", " + name + ", ") != std::string::npos;
  }
  // Messages has no member for the field at fault: its name is in the message.
  static bool names(const ClientReply& reply, const std::string& field) {
    const Json error = reply.json()["error"];
    if (!error.contains("param")) return error["message"].get<std::string>().find(field) != std::string::npos;
    return error["param"].is_string() && error["param"].get<std::string>().starts_with(field);
  }
};

TEST_F(OpenApi, HasEveryRouteAndNoOther) {
  std::size_t operations = 0;
  for (const serve::PathRoute& entry : serve::all_routes()) {
    std::string path(entry.path);
    if (entry.is_folder) path += entry.route.name == "models" ? "{name}" : "{id}";
    ASSERT_TRUE(document()["paths"].contains(path)) << path;
    const Json& methods = document()["paths"][path];
    EXPECT_TRUE(methods.contains(entry.route.method == "GET" ? "get" : "post")) << path;
    EXPECT_EQ(methods.contains("delete"), entry.route.deletes) << path;
    operations += methods.size();
  }
  std::set<std::string> ids;
  for (const auto& [path, methods] : document()["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) ids.insert(operation["operationId"]);
  }
  EXPECT_EQ(ids.size(), operations) << "ids are unique, and there are no paths beyond the routes";
  EXPECT_EQ(document()["paths"].size(), serve::all_routes().size());
}

void collect_references(const Json& json, std::set<std::string>& names) {
  if (json.is_object() && json.contains("$ref")) names.insert(json["$ref"]);
  if (!json.is_structured()) return;
  for (const auto& [key, inner] : json.items()) collect_references(inner, names);
}

TEST_F(OpenApi, EveryReferenceLeadsToASchemaAndEverySchemaIsReferredTo) {
  std::set<std::string> used;
  collect_references(document(), used);
  std::set<std::string> defined;
  for (const auto& [name, schema] : document()["components"]["schemas"].items()) {
    defined.insert("#/components/schemas/" + name);
  }
  EXPECT_EQ(used, defined);
}

TEST_F(OpenApi, EveryMemberItListsIsAcceptedAndHasItsEffect) {
  for (const Api& api : apis()) {
    for (const auto& [name, schema] : api.properties().items()) {
      SCOPED_TRACE(api.path + " " + name);
      if (name == "previous_response_id") continue;  // needs one that is kept
      Json body = with_companions(api.body, name);
      if (name != "messages" || !body.contains("messages")) body[name] = example(schema);
      const ClientReply reply = post(api, body);
      EXPECT_EQ(reply.status, 200) << to_text(body) << reply.body;
      if (schema.value("description", "") != "No effect") EXPECT_FALSE(lists(reply, name));
    }
  }
}

TEST_F(OpenApi, ValuesOfOtherTypesAreRefusedNamingTheMember) {
  for (const Api& api : apis()) {
    for (const auto& [name, schema] : api.properties().items()) {
      const std::set<std::string> types = types_of(schema);
      for (const Json& value : one_of_each_type()) {
        if (types.contains(type_of(value))) continue;
        Json body = with_companions(api.body, name);
        body[name] = value;
        const ClientReply reply = post(api, body);
        EXPECT_EQ(reply.status, 400) << api.path << " " << name << " " << value;
        if (reply.status == 400) EXPECT_TRUE(names(reply, name)) << name << " " << reply.body;
      }
    }
  }
}

// Members that clients of one API or another send, or that the readers know.
std::set<std::string> known_members() {
  return {"audio",
          "background",
          "betas",
          "best_of",
          "chat_template_kwargs",
          "container",
          "context_management",
          "continue_final_message",
          "conversation",
          "echo",
          "function_call",
          "functions",
          "guided_json",
          "include",
          "inference_geo",
          "input",
          "instructions",
          "logit_bias",
          "logprobs",
          "max_completion_tokens",
          "max_output_tokens",
          "max_tokens",
          "max_tool_calls",
          "mcp_servers",
          "messages",
          "metadata",
          "min_p",
          "min_tokens",
          "modalities",
          "model",
          "n",
          "output_config",
          "output_format",
          "parallel_tool_calls",
          "prediction",
          "previous_response_id",
          "prompt",
          "prompt_cache_key",
          "prompt_cache_retention",
          "reasoning",
          "reasoning_effort",
          "repetition_penalty",
          "response_format",
          "safety_identifier",
          "seed",
          "service_tier",
          "stop",
          "stop_sequences",
          "store",
          "stream",
          "stream_options",
          "suffix",
          "system",
          "temperature",
          "text",
          "thinking",
          "tool_choice",
          "tools",
          "top_k",
          "top_logprobs",
          "top_p",
          "truncation",
          "user",
          "user_id",
          "verbosity",
          "web_search_options"};
}

TEST_F(OpenApi, WhatItDoesNotListHasNoEffectOrIsRefusedByName) {
  std::set<std::string> candidates = known_members();
  for (const Api& api : apis()) {
    for (const auto& [name, schema] : api.properties().items()) candidates.insert(name);
    candidates.insert(api.refused.begin(), api.refused.end());
  }
  for (const Api& api : apis()) {
    for (const std::string& name : candidates) {
      if (api.properties().contains(name)) {
        EXPECT_FALSE(api.refused.contains(name)) << api.path << " " << name;
        continue;
      }
      bool refused = false;
      for (const Json& value : one_of_each_type()) {
        Json body = api.body;
        body[name] = value;
        const ClientReply reply = post(api, body);
        if (reply.status == 400) {
          EXPECT_TRUE(names(reply, name)) << name << " " << reply.body;
          refused = true;
        } else {
          EXPECT_TRUE(lists(reply, name)) << api.path << " " << name << " " << value;
        }
      }
      EXPECT_EQ(refused, api.refused.contains(name)) << api.path << " " << name;
    }
  }
}

TEST_F(OpenApi, BoundsAreThoseOfTheService) {
  const Json served = client.get("/openapi.json").json()["components"]["schemas"];
  EXPECT_EQ(served["ChatMembers"]["properties"]["n"]["maximum"], 4);
  EXPECT_EQ(served["ServedModel"]["enum"][1], "deepseek-flash");
  for (const Api& api : apis()) {
    for (const auto& [name, schema] : api.properties().items()) {
      const Json& bounded = resolve(name == "n" ? served[api.schema]["properties"]["n"] : schema);
      if (!bounded.contains("maximum")) continue;
      // What the engine judges is not judged by a recording.
      if (api.schema == "CompletionsRequest" && types_of(bounded).contains("number")) continue;
      Json body = with_companions(api.body, name);
      for (const char* bound : {"minimum", "maximum"}) {
        if (!bounded.contains(bound)) continue;
        body[name] = bounded[bound];
        if (name == "best_of" || name == "n") continue;
        EXPECT_EQ(post(api, body).status, 200) << to_text(body);
      }
      if (bounded["maximum"] == INT64_MAX) continue;  // nothing above it is a whole number here
      body[name] =
          to_text(bounded["maximum"]) == "1" ? Json(1.5) : Json(bounded["maximum"].get<double>() + 1);
      if (types_of(bounded).contains("integer")) body[name] = bounded["maximum"].get<std::int64_t>() + 1;
      EXPECT_EQ(post(api, body).status, 400) << to_text(body);
    }
  }
}

TEST(OpenApiWithKeys, SaysWhichPathsNeedOne) {
  TemporaryFolder folder;
  serve::ServiceOptions options;
  options.keys = serve::ApiKeys::read(folder.write("keys", "alpha\n"));
  RunningService running(std::move(options));
  HttpClient client(running.server.port());
  const Json json = client.get("/openapi.json").json();
  for (const serve::PathRoute& entry : serve::all_routes()) {
    if (entry.is_folder || entry.route.method != "GET") continue;
    const std::string path(entry.path);
    EXPECT_EQ(json["paths"][path]["get"].contains("security"), client.get(path).status == 401) << path;
  }
  EXPECT_FALSE(document()["components"].contains("securitySchemes"));
}

}  // namespace
}  // namespace thalweg::testing
