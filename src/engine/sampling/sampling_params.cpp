#include "engine/sampling/sampling_params.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "base/error.hpp"

namespace thalweg::engine {
namespace {

/// `value` in [low, high]; false for NaN.
template <typename T>
void check_range(std::string_view field, T value, T low, T high) {
  if (value >= low && value <= high) return;
  throw InputError(std::string(field), fmt::format("{}..{}", low, high), fmt::format("{}", value));
}

void check_tokens(std::string_view field, const std::vector<std::int32_t>& tokens, std::int32_t vocab_size) {
  for (const std::int32_t token : tokens) {
    if (token >= 0 && token < vocab_size) continue;
    throw InputError(std::string(field), fmt::format("token ids in 0..{}", vocab_size - 1),
                     fmt::format("{}", token));
  }
}

void check_distribution(const SamplingParams& p) {
  constexpr double smallest = std::numeric_limits<float>::min();
  if (!p.is_greedy() && !(p.temperature >= smallest && p.temperature <= SamplingLimits::max_temperature)) {
    throw InputError("temperature",
                     fmt::format("0 (greedy) or {:.3g}..{}", smallest, SamplingLimits::max_temperature),
                     fmt::format("{}", p.temperature));
  }
  if (p.top_k < -1)
    throw InputError("top_k", "-1 or 0 (all tokens), or at least 1", fmt::format("{}", p.top_k));
  if (!(p.top_p > 0 && p.top_p <= 1)) {
    throw InputError("top_p", "above 0 and at most 1", fmt::format("{}", p.top_p));
  }
  check_range("min_p", p.min_p, 0.0, 1.0);
  check_range("repetition_penalty", p.repetition_penalty, SamplingLimits::min_repetition_penalty,
              SamplingLimits::max_repetition_penalty);
  check_range("presence_penalty", p.presence_penalty, -SamplingLimits::max_penalty,
              SamplingLimits::max_penalty);
  check_range("frequency_penalty", p.frequency_penalty, -SamplingLimits::max_penalty,
              SamplingLimits::max_penalty);
}

void check_bias(const std::vector<LogitBias>& bias, std::int32_t vocab_size) {
  std::vector<std::int32_t> tokens;
  for (const LogitBias& entry : bias) {
    tokens.push_back(entry.token);
    check_range<double>(fmt::format("logit_bias.{}", entry.token), entry.bias, -SamplingLimits::max_bias,
                        SamplingLimits::max_bias);
  }
  check_tokens("logit_bias", tokens, vocab_size);
  std::sort(tokens.begin(), tokens.end());
  const auto repeated = std::adjacent_find(tokens.begin(), tokens.end());
  if (repeated == tokens.end()) return;
  throw InputError("logit_bias", "every token at most once", fmt::format("token {} twice", *repeated));
}

void check_allowed(const SamplingParams& p, std::int32_t vocab_size) {
  check_tokens("banned_tokens", p.banned_tokens, vocab_size);
  if (!p.allowed_tokens) return;
  check_tokens("allowed_tokens", *p.allowed_tokens, vocab_size);
  if (p.allowed_tokens->empty()) throw InputError("allowed_tokens", "at least one token", "an empty list");
  std::vector<std::int32_t> banned = p.banned_tokens;
  std::sort(banned.begin(), banned.end());
  const bool all_banned = std::all_of(
      p.allowed_tokens->begin(), p.allowed_tokens->end(),
      [&](std::int32_t token) { return std::binary_search(banned.begin(), banned.end(), token); });
  if (all_banned) {
    throw InputError("allowed_tokens", "a token that is not in banned_tokens", "only banned tokens");
  }
}

void check_stops(const SamplingParams& p, std::int32_t vocab_size) {
  if (p.max_tokens && *p.max_tokens < 1) {
    throw InputError("max_tokens", "at least 1", fmt::format("{}", *p.max_tokens));
  }
  if (p.min_tokens < 0) throw InputError("min_tokens", "at least 0", fmt::format("{}", p.min_tokens));
  if (p.max_tokens && p.min_tokens > *p.max_tokens) {
    throw InputError("min_tokens", fmt::format("at most max_tokens ({})", *p.max_tokens),
                     fmt::format("{}", p.min_tokens));
  }
  check_tokens("stop_tokens", p.stop_tokens, vocab_size);
  if (p.stop_tokens.size() > SamplingLimits::max_stop_tokens) {
    throw InputError("stop_tokens", fmt::format("at most {}", SamplingLimits::max_stop_tokens),
                     fmt::format("{}", p.stop_tokens.size()));
  }
  check_stop_strings(p.stop_strings);
}

void check_top(std::string_view field, const std::optional<std::int32_t>& top) {
  if (top) check_range(field, *top, 0, SamplingLimits::max_top_logprobs);
}

}  // namespace

void check_stop_strings(const std::vector<std::string>& strings) {
  if (strings.size() > SamplingLimits::max_stop_strings) {
    throw InputError("stop_strings", fmt::format("at most {}", SamplingLimits::max_stop_strings),
                     fmt::format("{}", strings.size()));
  }
  for (std::size_t i = 0; i < strings.size(); ++i) {
    if (!strings[i].empty()) continue;
    throw InputError(fmt::format("stop_strings[{}]", i), "at least one byte", "an empty string");
  }
}

void validate(const SamplingParams& params, std::int32_t vocab_size) {
  check_distribution(params);
  check_bias(params.logit_bias, vocab_size);
  check_allowed(params, vocab_size);
  check_stops(params, vocab_size);
  check_top("logprobs", params.logprobs);
  check_top("filtered_logprobs", params.filtered_logprobs);
  check_top("prompt_logprobs", params.prompt_logprobs);
  check_range("n", params.n, 1, SamplingLimits::max_choices);
}

}  // namespace thalweg::engine
