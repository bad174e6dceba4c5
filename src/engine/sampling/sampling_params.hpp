// What a request may ask of the sampler and of the stop rules, as one validated value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace thalweg::engine {

/// Limits of `SamplingParams`; `validate` quotes them in its messages.
struct SamplingLimits {
  static constexpr double max_temperature = 2;
  static constexpr double min_repetition_penalty = 0.01;
  static constexpr double max_repetition_penalty = 10;
  static constexpr double max_penalty = 2;  ///< presence and frequency: -2..2
  static constexpr double max_bias = 100;   ///< logit bias: -100..100
  static constexpr int max_top_logprobs = 1000;
  static constexpr int max_stop_strings = 16;
  static constexpr int max_stop_tokens = 64;
  static constexpr int max_choices = 128;
};

/// Added to one token's logit.
struct LogitBias {
  std::int32_t token = 0;
  float bias = 0;
};

/// Plain data; the defaults sample the model's own distribution until end of sequence. Nothing here is
/// clamped or corrected later: values out of range are refused by `validate`.
struct SamplingParams {
  /// 0: greedy, the largest logit, ties to the lower id. Else a normal float in (0, 2]; logits are divided by
  /// it.
  double temperature = 1;
  /// Keep the k most likely tokens; -1 and 0 mean all.
  std::int32_t top_k = 0;
  /// Keep tokens, most likely first, while the probability mass before them is <= top_p; (0, 1], 1 means all.
  double top_p = 1;
  /// Keep tokens at least min_p times as likely as the most likely one; [0, 1], 0 means all.
  double min_p = 0;

  /// Tokens of prompt or output: a positive logit is divided by it, another multiplied; [0.01, 10], 1 is off.
  double repetition_penalty = 1;
  /// Subtracted once from the logit of every token of the output; [-2, 2].
  double presence_penalty = 0;
  /// Subtracted from a token's logit for every time it stands in the output; [-2, 2].
  double frequency_penalty = 0;
  std::vector<LogitBias> logit_bias;  ///< a token at most once, biases in [-100, 100]

  /// Only these tokens may be produced; absent: all. An empty list is an error.
  std::optional<std::vector<std::int32_t>> allowed_tokens;
  std::vector<std::int32_t> banned_tokens;

  /// End of sequence and stop tokens cannot be produced, and stop strings do not end the output, before this
  /// many tokens; 0..max_tokens.
  std::int64_t min_tokens = 0;
  /// Output tokens at most, at least 1; absent: until the context is full.
  std::optional<std::int64_t> max_tokens;
  std::vector<std::int32_t> stop_tokens;  ///< besides end of sequence; at most 64
  bool ignore_eos = false;                ///< end of sequence is a token like any other
  std::vector<std::string> stop_strings;  ///< bytes; at most 16, none empty
  bool include_stop = false;              ///< the stop string that ended the output stays in its text

  /// Log-probabilities of output tokens under the model's own distribution (softmax of the logits as they
  /// left the model), with this many alternatives; 0..1000, absent: none.
  std::optional<std::int32_t> logprobs;
  /// The same under the distribution that was drawn from (after penalties, masks, temperature and filters).
  std::optional<std::int32_t> filtered_logprobs;
  /// The same as `logprobs` for every prompt token but the first.
  std::optional<std::int32_t> prompt_logprobs;

  std::int32_t n = 1;                 ///< independent answers to one prompt, 1..128
  std::optional<std::uint64_t> seed;  ///< absent: whoever admits the request draws one

  bool is_greedy() const { return temperature == 0; }
  bool has_penalties() const {
    return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0;
  }
};

/// Throws InputError naming the first field that is out of range, what was expected and what was found. Token
/// ids must lie in [0, vocab_size).
void validate(const SamplingParams& params, std::int32_t vocab_size);

/// The part of `validate` that concerns stop strings.
void check_stop_strings(const std::vector<std::string>& strings);

}  // namespace thalweg::engine
