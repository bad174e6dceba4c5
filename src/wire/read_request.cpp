#include "wire/read_request.hpp"

#include <utility>

#include "text/chat_encoding.hpp"
#include "wire/chat_completions.hpp"
#include "wire/messages.hpp"
#include "wire/responses.hpp"

namespace thalweg::wire {
namespace {

template <class Value>
Json optional_value(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

const char* name_of(text::ImageDetail detail) {
  static constexpr const char* kNames[] = {"low", "high", "original", "auto"};
  return kNames[static_cast<int>(detail)];
}

const char* name_of(text::ToolChoice choice) {
  static constexpr const char* kNames[] = {"auto", "none", "required"};
  return kNames[static_cast<int>(choice)];
}

const char* name_of(text::ResponseFormat::Kind kind) {
  static constexpr const char* kNames[] = {"text", "json_object", "json_schema", "regex"};
  return kNames[static_cast<int>(kind)];
}

const char* name_of(OutputConstraint::Kind kind) {
  static constexpr const char* kNames[] = {"json", "regex", "tool_call", "tool_call_required"};
  return kNames[static_cast<int>(kind)];
}

Json describe_images(const std::vector<text::Image>& images) {
  Json list = Json::array();
  for (const text::Image& image : images) {
    const bool is_inline = image.kind == text::Image::Kind::data_url;
    list.push_back(Json{{"kind", is_inline ? "data_url" : "url"},
                        {"detail", name_of(image.detail)},
                        {"url", is_inline ? Json() : Json(image.url)}});
  }
  return list;
}

Json describe_inference(const InferenceOptions& options) {
  Json constraint;
  if (options.constraint) {
    constraint = Json{{"kind", name_of(options.constraint->kind)}, {"schema", options.constraint->text}};
  }
  return Json{{"max_tokens", optional_value(options.max_tokens)},
              {"temperature", options.temperature},
              {"top_p", options.top_p},
              {"logprobs", options.logprobs},
              {"top_logprobs", optional_value(options.top_logprobs)},
              {"seed", optional_value(options.seed)},
              {"output_constraint", std::move(constraint)}};
}

}  // namespace

std::optional<Api> api_from_string(std::string_view name) {
  if (name == "chat") return Api::chat;
  if (name == "responses") return Api::responses;
  if (name == "messages") return Api::messages;
  return std::nullopt;
}

Request read_request(Api api, const Json& body, const Policy& policy) {
  switch (api) {
    case Api::responses:
      return read_responses(body, policy);
    case Api::messages:
      return read_messages(body, policy);
    case Api::chat:
      break;
  }
  return read_chat_completions(body, policy);
}

Json describe(Request request, const text::Tokenizer& tokenizer, const text::SpecialTokens& specials) {
  const bool thinking = request.conversation.thinking;
  const int effort = request.conversation.effort;
  const auto choice = request.conversation.tool_choice;
  const auto format = request.conversation.response_format.kind;
  const text::Prompt prompt = text::render(std::move(request.conversation));
  return Json{{"prompt", text::prompt_text(prompt, tokenizer, specials)},
              {"ids", text::encode(prompt, tokenizer, specials)},
              {"images", describe_images(prompt.images)},
              {"thinking", thinking},
              {"budget", thinking ? Json(effort) : Json()},
              {"tool_choice", name_of(choice)},
              {"response_format", name_of(format)},
              {"stream", request.stream},
              {"inference", describe_inference(request.inference)},
              {"parsing", text::to_json(request.parsing)}};
}

}  // namespace thalweg::wire
