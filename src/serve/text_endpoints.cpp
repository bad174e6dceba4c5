#include "serve/text_endpoints.hpp"

#include "serve/completions.hpp"
#include "serve/logprobs.hpp"
#include "text/chat_encoding.hpp"
#include "wire/chat_completions.hpp"
#include "wire/fields.hpp"

namespace thalweg::serve {
namespace {

Json ids_json(const std::vector<text::TokenId>& ids, bool pieces, const text::Tokenizer& tokenizer) {
  Json json = {{"ids", ids}, {"count", ids.size()}};
  if (!pieces) return json;
  Json list = Json::array();
  for (const text::TokenId id : ids) list.push_back(token_spelling(id, tokenizer));
  json["pieces"] = std::move(list);
  return json;
}

Json tokenize_messages(Json body, const wire::Policy& policy, const Backend& backend) {
  bool pieces = false;
  if (const auto found = body.find("return_pieces"); found != body.end()) {
    if (!found->is_boolean()) wire::malformed("return_pieces", "a boolean", *found);
    pieces = found->get<bool>();
    body.erase("return_pieces");
  }
  if (!body.contains("model")) body["model"] = policy.model_names.front();
  wire::Request request = wire::read_chat_completions(body, policy);
  return ids_json(encode_conversation(std::move(request.conversation), backend), pieces, backend.tokenizer());
}

// These endpoints are ours: a member that is not known is a mistake.
void refuse_unknown(wire::Fields& body, wire::IgnoredFields& ignored) {
  body.finish();
  for (const std::string& name : ignored.take()) {
    if (name != "model") wire::rejected(name + ": unknown member", name);
  }
}

}  // namespace

std::vector<text::TokenId> encode_conversation(text::Conversation conversation, const Backend& backend) {
  const text::Prompt prompt = text::render(std::move(conversation));
  if (!prompt.images.empty()) wire::rejected("images are not supported yet", "messages");
  return text::encode(prompt, backend.tokenizer(), backend.specials());
}

Json tokenize(const Json& json, const wire::Policy& policy, const Backend& backend) {
  if (json.contains("messages")) return tokenize_messages(json, policy, backend);
  wire::IgnoredFields ignored;
  wire::Fields body(json, "", ignored);
  const std::string text = body.require_string("text");
  const bool add_special = body.boolean("add_special_tokens").value_or(true);
  const bool parse_special = body.boolean("parse_special").value_or(true);
  const bool pieces = body.boolean("return_pieces").value_or(false);
  refuse_unknown(body, ignored);
  const text::Tokenizer& tokenizer = backend.tokenizer();
  std::vector<text::TokenId> ids = parse_special ? tokenizer.encode(text) : tokenizer.encode_plain(text);
  if (add_special && (ids.empty() || ids.front() != backend.specials().bos)) {
    ids.insert(ids.begin(), backend.specials().bos);
  }
  return ids_json(ids, pieces, tokenizer);
}

Json detokenize(const Json& json, const Backend& backend) {
  wire::IgnoredFields ignored;
  wire::Fields body(json, "", ignored);
  const Json* list = body.list("ids");
  if (list == nullptr) body.require("ids");
  refuse_unknown(body, ignored);
  if (list->empty()) return {{"text", ""}};
  return {{"text", backend.tokenizer().decode(read_ids(*list, "ids", backend.tokenizer()))}};
}

}  // namespace thalweg::serve
