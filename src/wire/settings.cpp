#include "wire/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace thalweg::wire {
namespace {

using text::kDefaultEffort;
using text::kHighestEffort;

constexpr std::uint32_t kThinkingTokens = 65536;
constexpr std::uint32_t kHighestEffortTokens = 131072;
constexpr std::uint32_t kAnswerTokens = 8192;
constexpr double kLeastThinkingTopP = 0.95;
constexpr int kMostTopLogprobs = 20;

struct NamedEffort {
  std::string_view name;
  int effort;
};

constexpr std::array<NamedEffort, 8> kEfforts{{{"none", 0},
                                               {"minimal", 50},
                                               {"low", 50},
                                               {"medium", kDefaultEffort},
                                               {"high", kDefaultEffort},
                                               {"xhigh", kDefaultEffort},
                                               {"max", kHighestEffort},
                                               {"ultra", kHighestEffort}}};

constexpr std::string_view kEffortValues =
    "none, minimal, low, medium, high, xhigh, max, ultra or a whole number in [1, 100]";

bool is_digits(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

int numeric_effort(const Json& value, const std::string& path) {
  if (const auto number = whole_number(value); number && *number >= 1 && *number <= kHighestEffort) {
    return static_cast<int>(*number);
  }
  if (value.is_string()) {
    const auto& digits = value.get_ref<const std::string&>();
    int effort = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), effort);
    if (result.ec == std::errc() && effort >= 1 && effort <= kHighestEffort) return effort;
  }
  rejected(fmt::format("Invalid {} value {}, expected {}", path, to_text(value), kEffortValues), path);
}

}  // namespace

std::optional<bool> read_thinking_type(Fields& body) {
  const Json* given = body.get("thinking");
  if (given == nullptr) return std::nullopt;
  Fields thinking(*given, body.path("thinking"), body.ignored());
  const std::string type = thinking.require_string("type");
  thinking.ignore("budget_tokens");
  thinking.finish();
  if (type == "enabled" || type == "adaptive") return true;
  if (type == "disabled") return false;
  malformed(thinking.path("type"), "enabled, adaptive or disabled", type);
}

int read_effort(const Json& value, const std::string& path) {
  if (value.is_number_integer() || whole_number(value)) return numeric_effort(value, path);
  if (value.is_string()) {
    const auto& name = value.get_ref<const std::string&>();
    if (is_digits(name)) return numeric_effort(value, path);
    for (const NamedEffort& known : kEfforts) {
      if (known.name == name) return known.effort;
    }
  }
  malformed(path, kEffortValues, value);
}

void apply_thinking(const ThinkingWish& wish, const Policy& policy, text::Conversation& conversation) {
  const bool by_effort = wish.effort ? *wish.effort > 0 : policy.thinking_by_default;
  conversation.thinking = wish.on.value_or(by_effort);
  const int effort = wish.effort.value_or(0);
  conversation.effort = conversation.thinking && effort > 0 ? effort : kDefaultEffort;
}

Sampling effective_sampling(bool thinking, std::optional<double> temperature, std::optional<double> top_p) {
  if (thinking) return {1.0, std::max(top_p.value_or(1.0), kLeastThinkingTopP)};
  return {temperature.value_or(1.0), 1.0};
}

void read_sampling(Fields& body, Request& request) {
  const auto temperature = body.number("temperature");
  if (temperature && (*temperature < 0 || *temperature > 2)) {
    rejected("Invalid temperature value, the valid range of temperature is [0, 2]", "temperature");
  }
  const auto top_p = body.number("top_p");
  if (top_p && (*top_p <= 0 || *top_p > 1)) {
    rejected("Invalid top_p value, the valid range of top_p is (0, 1.0]", "top_p");
  }
  const Sampling sampling = effective_sampling(request.conversation.thinking, temperature, top_p);
  request.inference.temperature = sampling.temperature;
  request.inference.top_p = sampling.top_p;
  if (temperature && *temperature != sampling.temperature) body.ignored().add("temperature");
  if (top_p && *top_p != sampling.top_p) body.ignored().add("top_p");
}

std::optional<std::int64_t> read_integer(Fields& fields, std::string_view name, std::int64_t lowest,
                                         std::int64_t highest, const std::string& range_message) {
  const Json* value = fields.get(name);
  if (value == nullptr) return std::nullopt;
  const auto number = whole_number(*value);
  if (!number && !value->is_number_integer()) malformed(fields.path(name), "a whole number", *value);
  if (!number || *number < lowest || *number > highest) rejected(range_message, fields.path(name));
  return number;
}

std::optional<std::uint32_t> read_max_tokens(Fields& body, std::string_view name, const Policy& policy,
                                             bool lower) {
  const std::int64_t bound = policy.max_tokens_bound;
  const std::string message =
      fmt::format("Invalid max_tokens value, the valid range of max_tokens is [1, {}]", bound);
  const auto asked = read_integer(body, name, 1, lower ? INT64_MAX : bound, message);
  if (!asked) return std::nullopt;
  if (*asked > bound) body.ignored().add(body.path(name));
  return static_cast<std::uint32_t>(std::min(*asked, bound));
}

std::uint32_t resolve_max_tokens(const text::Conversation& conversation, std::optional<std::uint32_t> asked,
                                 std::uint64_t prompt_tokens, std::uint64_t context_limit) {
  const std::uint64_t completion = asked.value_or(0);
  if (prompt_tokens + completion > context_limit) {
    rejected(
        fmt::format(
            "This model's maximum context length is {} tokens. However, you requested {} tokens ({} in "
            "the messages, {} in the completion). Please reduce the length of the messages or completion.",
            context_limit, prompt_tokens + completion, prompt_tokens, completion),
        "");
  }
  if (asked) return *asked;
  const bool highest = conversation.effort == kHighestEffort;
  const std::uint32_t usual =
      !conversation.thinking ? kAnswerTokens : (highest ? kHighestEffortTokens : kThinkingTokens);
  const std::uint64_t room = std::max<std::uint64_t>(context_limit - prompt_tokens, 1);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(usual, room));
}

std::vector<std::string> read_stop_sequences(Fields& body, std::string_view name) {
  const Json* value = body.get(name);
  if (value == nullptr) return {};
  std::vector<std::string> stops;
  if (value->is_string()) {
    stops.push_back(value->get<std::string>());
  } else if (value->is_array()) {
    for (std::size_t i = 0; i < value->size(); ++i) {
      stops.push_back(as_string((*value)[i], element_path(body.path(name), i)));
    }
  } else {
    malformed(body.path(name), "a string or a list of strings", *value);
  }
  if (stops.size() > text::ParserStart::kMaxStopSequences) {
    rejected(fmt::format("Stop string array too long: {}", stops.size()), body.path(name));
  }
  const auto empty = std::find(stops.begin(), stops.end(), "");
  if (empty != stops.end()) {
    const std::string place =
        value->is_string() ? "stop" : element_path("stop", static_cast<std::size_t>(empty - stops.begin()));
    rejected(
        fmt::format(
            "Invalid '{}': empty string. Expected a string with minimum length 1, but got an empty string "
            "instead.",
            place),
        body.path(name));
  }
  return stops;
}

std::optional<std::uint32_t> read_top_logprobs(Fields& body) {
  const auto count = read_integer(body, "top_logprobs", 0, kMostTopLogprobs,
                                  "Invalid top_logprobs value, the valid range of top_logprobs is [0, 20].");
  if (!count) return std::nullopt;
  return static_cast<std::uint32_t>(*count);
}

std::string read_model(Fields& body, const Policy& policy, bool any_claude) {
  std::string name = body.require_string("model");
  const auto& known = policy.model_names;
  const bool served = std::find(known.begin(), known.end(), name) != known.end();
  if (!served && !(any_claude && name.rfind("claude", 0) == 0)) {
    rejected(
        fmt::format("The supported API model names are {}, but you passed {}.", fmt::join(known, ", "), name),
        "model");
  }
  return name;
}

}  // namespace thalweg::wire
