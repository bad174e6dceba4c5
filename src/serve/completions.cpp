#include "serve/completions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "wire/fields.hpp"
#include "wire/settings.hpp"

namespace thalweg::serve {
namespace {

using wire::Fields;
using wire::malformed;
using wire::rejected;

constexpr std::int64_t kDefaultMaxTokens = 16;

std::string integer_range(std::string_view name, std::int64_t lowest, std::int64_t highest) {
  return fmt::format("Invalid {} value, the valid range of {} is [{}, {}]", name, name, lowest, highest);
}

std::optional<std::int64_t> integer(Fields& body, std::string_view name, std::int64_t lowest,
                                    std::int64_t highest) {
  return wire::read_integer(body, name, lowest, highest, integer_range(name, lowest, highest));
}

// Fill in the middle: the prompt before the hole, the suffix after it.
std::vector<text::TokenId> with_suffix(const std::string& prompt, const std::string& suffix,
                                       const Backend& backend) {
  const text::SpecialTokens& specials = backend.specials();
  if (!specials.fim_begin || !specials.fim_hole || !specials.fim_end) {
    rejected("suffix is not supported by this model, which has no tokens for it", "suffix");
  }
  std::vector<text::TokenId> ids{specials.bos, *specials.fim_begin};
  const auto append = [&](const std::string& text, text::TokenId after) {
    const auto plain = backend.tokenizer().encode_plain(text);
    ids.insert(ids.end(), plain.begin(), plain.end());
    ids.push_back(after);
  };
  append(prompt, *specials.fim_hole);
  append(suffix, *specials.fim_end);
  return ids;
}

struct RawPrompt {
  std::vector<text::TokenId> ids;
  std::string text;
};

RawPrompt read_prompt(Fields& body, const Backend& backend) {
  const Json* prompt = &body.require("prompt");
  // A list of one prompt is how many libraries send a single one.
  if (prompt->is_array() && prompt->size() == 1 && !prompt->front().is_number()) prompt = &prompt->front();
  const std::optional<std::string> suffix = body.string("suffix");
  if (prompt->is_string()) {
    const auto& text = prompt->get_ref<const std::string&>();
    return {suffix && !suffix->empty() ? with_suffix(text, *suffix, backend) : encode_raw(text, backend),
            text};
  }
  if (!prompt->is_array()) malformed("prompt", "a string or a list of token ids", *prompt);
  if (!prompt->empty() && !prompt->front().is_number()) {
    rejected("prompt: several prompts in one request are not supported", "prompt");
  }
  if (suffix && !suffix->empty()) rejected("suffix: needs a prompt that is a string", "suffix");
  RawPrompt result{read_ids(*prompt, "prompt", backend.tokenizer()), {}};
  result.text = backend.tokenizer().decode(result.ids);
  return result;
}

std::vector<engine::LogitBias> read_bias(Fields& body) {
  std::vector<engine::LogitBias> biases;
  const Json* object = body.object("logit_bias");
  if (object == nullptr) return biases;
  for (const auto& [name, value] : object->items()) {
    std::int32_t token = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), token);
    const std::string path = "logit_bias." + name;
    if (read.ec != std::errc() || read.ptr != name.data() + name.size()) {
      rejected(path + ": expected a token id", path);
    }
    if (!value.is_number()) malformed(path, "a number", value);
    biases.push_back({token, value.get<float>()});
  }
  return biases;
}

void read_sampling(Fields& body, const wire::Policy& policy, engine::SamplingParams& params) {
  params.temperature = body.number("temperature").value_or(1);
  params.top_p = body.number("top_p").value_or(1);
  params.top_k = static_cast<std::int32_t>(integer(body, "top_k", -1, INT32_MAX).value_or(0));
  params.min_p = body.number("min_p").value_or(0);
  params.repetition_penalty = body.number("repetition_penalty").value_or(1);
  params.presence_penalty = body.number("presence_penalty").value_or(0);
  params.frequency_penalty = body.number("frequency_penalty").value_or(0);
  params.logit_bias = read_bias(body);
  params.min_tokens = integer(body, "min_tokens", 0, policy.max_tokens_bound).value_or(0);
  params.ignore_eos = body.boolean("ignore_eos").value_or(false);
  params.stop_strings = wire::read_stop_sequences(body, "stop");
  params.n = static_cast<std::int32_t>(integer(body, "n", 1, policy.max_choices).value_or(1));
  if (integer(body, "best_of", 1, INT32_MAX).value_or(params.n) != params.n) {
    rejected("best_of is not supported", "best_of");
  }
  if (const auto seed = integer(body, "seed", 0, INT64_MAX)) params.seed = static_cast<std::uint64_t>(*seed);
  if (const auto top = integer(body, "logprobs", 0, 20)) params.logprobs = static_cast<std::int32_t>(*top);
}

}  // namespace

std::vector<text::TokenId> encode_raw(const std::string& text, const Backend& backend) {
  std::vector<text::TokenId> ids = backend.tokenizer().encode(text);
  if (ids.empty() || ids.front() != backend.specials().bos) ids.insert(ids.begin(), backend.specials().bos);
  return ids;
}

std::vector<text::TokenId> read_ids(const Json& list, const std::string& path,
                                    const text::Tokenizer& tokenizer) {
  if (list.empty()) rejected(path + ": expected at least one token id", path);
  std::vector<text::TokenId> ids;
  ids.reserve(list.size());
  for (const Json& id : list) {
    const std::string at = wire::element_path(path, ids.size());
    const auto number = wire::whole_number(id);
    if (!number && !id.is_number_integer()) malformed(at, "a token id", id);
    if (!number || *number < 0 || *number >= tokenizer.vocab_size()) {
      rejected(
          fmt::format("{}: expected a token id below {}, found {}", at, tokenizer.vocab_size(), to_text(id)),
          at);
    }
    ids.push_back(static_cast<text::TokenId>(*number));
  }
  return ids;
}

CompletionsRequest read_completions(const Json& json, const wire::Policy& policy, const Backend& backend) {
  wire::IgnoredFields ignored;
  Fields body(json, "", ignored);
  CompletionsRequest result;
  result.model = wire::read_model(body, policy);
  RawPrompt prompt = read_prompt(body, backend);
  read_sampling(body, policy, result.request.sampling);
  result.stream = body.boolean("stream").value_or(false);
  if (const Json* given = body.get("stream_options")) {
    if (!result.stream) rejected("stream_options: only with stream", "stream_options");
    Fields options(*given, "stream_options", ignored);
    result.include_usage = options.boolean("include_usage").value_or(false);
    options.finish();
  }
  if (body.boolean("echo").value_or(false)) {
    if (result.request.sampling.logprobs) rejected("echo: not together with logprobs", "echo");
    result.echo = std::move(prompt.text);
  }
  const auto asked = wire::read_max_tokens(body, "max_tokens", policy, false);
  const std::int64_t most =
      wire::resolve_max_tokens({}, asked, prompt.ids.size(), static_cast<std::uint64_t>(backend.context()));
  result.request.sampling.max_tokens = asked ? most : std::min(most, kDefaultMaxTokens);
  result.request.prompt = std::move(prompt.ids);
  body.finish();
  result.ignored_fields = ignored.take();
  return result;
}

}  // namespace thalweg::serve
