// Settings that the three APIs share: thinking, sampling, limits, stop sequences.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/fields.hpp"
#include "wire/request.hpp"

namespace thalweg::wire {

/// Thinking as a client may ask for it; nothing asked leaves it to the policy.
struct ThinkingWish {
  std::optional<bool> on;     ///< said outright
  std::optional<int> effort;  ///< 0 for "none", else 1..100
};

/// Reads `thinking` {type, budget_tokens} of `body`.
std::optional<bool> read_thinking_type(Fields& body);

/// An effort: a name, a whole number in [1, 100], or its digits; 0 for "none". Throws MalformedRequest for
/// other names and types, RejectedRequest for numbers out of range.
int read_effort(const Json& value, const std::string& path);

/// An outright wish beats effort, which beats the default; off discards effort.
void apply_thinking(const ThinkingWish& wish, const Policy& policy, text::Conversation& conversation);

struct Sampling {
  double temperature;
  double top_p;
};

/// What sampling really uses: with thinking, temperature 1 and top_p of at least 0.95; without, top_p 1.
Sampling effective_sampling(bool thinking, std::optional<double> temperature, std::optional<double> top_p);

/// Reads `temperature` and `top_p` into request.inference; thinking must be settled. What does not take
/// effect is listed.
void read_sampling(Fields& body, Request& request);

/// The limit of `max_tokens` fields: 1..bound, or RejectedRequest. Above the bound it is lowered instead if
/// `lower`.
std::optional<std::uint32_t> read_max_tokens(Fields& body, std::string_view name, const Policy& policy,
                                             bool lower);

/// Tokens to generate at most, once the prompt is encoded: what was asked, else 65,536 with thinking (131,072
/// at the highest effort) and 8,192 without, lowered to the room left but at least 1. Throws RejectedRequest
/// if prompt and asked limit exceed `context_limit`, or the prompt alone does.
std::uint32_t resolve_max_tokens(const text::Conversation& conversation, std::optional<std::uint32_t> asked,
                                 std::uint64_t prompt_tokens, std::uint64_t context_limit);

/// A string or a list of up to 16 strings, none empty; `name` is the field.
std::vector<std::string> read_stop_sequences(Fields& body, std::string_view name);

/// Reads `top_logprobs`: 0..20.
std::optional<std::uint32_t> read_top_logprobs(Fields& body);

/// Reads `model` and checks it against the policy. `any_claude` lets names that start with "claude" stand for
/// the served model.
std::string read_model(Fields& body, const Policy& policy, bool any_claude = false);

/// An integer member, checked to be one; values that no int64 holds are out of [lowest, highest] too.
std::optional<std::int64_t> read_integer(Fields& fields, std::string_view name, std::int64_t lowest,
                                         std::int64_t highest, const std::string& range_message);

/// Fills what follows from the rest: the output constraint, the parser's start, the list of ignored fields.
/// Checks what json_object asks of the conversation; `format_field` is where the API has its response format.
void complete(Request& request, std::string_view format_field, std::vector<std::string> stop_sequences,
              IgnoredFields& ignored);

}  // namespace thalweg::wire
