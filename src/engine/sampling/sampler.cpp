#include "engine/sampling/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engine/sampling/draw.hpp"
#include "engine/sampling/philox.hpp"
#include "engine/sampling/row_scan.hpp"

namespace thalweg::engine {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr std::size_t word_bits = 32;

std::size_t mask_words(std::size_t vocab_size) {
  return (vocab_size + word_bits - 1) / word_bits;
}

std::vector<std::uint32_t> mask_of(const SamplingParams& params, std::int32_t vocab_size) {
  if (!params.allowed_tokens && params.banned_tokens.empty()) return {};
  const auto word = [](std::int32_t token) { return static_cast<std::size_t>(token) / word_bits; };
  const auto bit = [](std::int32_t token) {
    return std::uint32_t{1} << (static_cast<std::size_t>(token) % word_bits);
  };
  std::vector<std::uint32_t> mask(mask_words(static_cast<std::size_t>(vocab_size)),
                                  params.allowed_tokens ? 0 : ~std::uint32_t{0});
  if (params.allowed_tokens) {
    for (const std::int32_t token : *params.allowed_tokens) mask[word(token)] |= bit(token);
  }
  for (const std::int32_t token : params.banned_tokens) mask[word(token)] &= ~bit(token);
  return mask;
}

void apply_mask(std::span<float> row, std::span<const std::uint32_t> mask) {
  for (std::size_t first = 0; first < row.size(); first += word_bits) {
    const std::uint32_t word = mask[first / word_bits];
    if (word == ~std::uint32_t{0}) continue;
    const std::size_t count = std::min(word_bits, row.size() - first);
    for (std::size_t j = 0; j < count; ++j) {
      if ((word >> j & 1) == 0) row[first + j] = -infinity;
    }
  }
}

}  // namespace

SamplerScratch::SamplerScratch(std::int32_t vocab_size)
    : row(static_cast<std::size_t>(vocab_size)), filters(static_cast<std::size_t>(vocab_size)) {}

Sampler::Sampler(const SamplingParams& params, std::uint64_t seed, std::int32_t vocab_size,
                 std::int32_t eos_token)
    : params_(params), seed_(seed), vocab_size_(vocab_size) {
  validate(params, vocab_size);
  filters_ = {params.temperature, params.top_k, params.top_p, params.min_p};
  allowed_ = mask_of(params, vocab_size);
  end_tokens_ = params.stop_tokens;
  if (eos_token >= vocab_size) {
    throw InputError("eos_token", fmt::format("a token id below {}", vocab_size),
                     fmt::format("{}", eos_token));
  }
  if (eos_token >= 0 && !params.ignore_eos) end_tokens_.push_back(eos_token);
}

bool Sampler::adjusts(const RowContext& context) const {
  return params_.has_penalties() || !params_.logit_bias.empty() || !allowed_.empty() ||
         !context.allowed.empty() || context.output_length < params_.min_tokens;
}

void Sampler::adjust(std::span<float> row, const RowContext& context) const {
  if (params_.has_penalties()) {
    if (context.counts == nullptr) throw InputError("counts", "the sequence's token counts", "none");
    apply_penalties(row, *context.counts, params_);
  }
  for (const LogitBias& entry : params_.logit_bias) row[static_cast<std::size_t>(entry.token)] += entry.bias;
  if (!allowed_.empty()) apply_mask(row, allowed_);
  if (!context.allowed.empty()) {
    if (context.allowed.size() < mask_words(row.size())) {
      throw InputError("grammar mask", fmt::format("at least {} words", mask_words(row.size())),
                       fmt::format("{}", context.allowed.size()));
    }
    apply_mask(row, context.allowed);
  }
  if (context.output_length < params_.min_tokens) {
    for (const std::int32_t token : end_tokens_) row[static_cast<std::size_t>(token)] = -infinity;
  }
}

std::int32_t Sampler::sample(std::span<const float> logits, const RowContext& context,
                             SamplerScratch& scratch, OutputLogprobs* logprobs) const {
  if (logits.size() != static_cast<std::size_t>(vocab_size_)) {
    throw InputError("logits", fmt::format("{} of them", vocab_size_), fmt::format("{}", logits.size()));
  }
  std::span<const float> row = logits;
  LargestLogit largest = find_largest(row);
  if (adjusts(context)) {
    const std::span<float> copy(scratch.row);
    std::copy(logits.begin(), logits.end(), copy.begin());
    adjust(copy, context);
    row = copy;
    largest = find_largest(row);
  }
  if (largest.logit == -infinity) {
    throw NoTokenAllowed(
        fmt::format("sampling at position {}: expected a token to choose from, found all masked "
                    "(grammar, allowed_tokens, banned_tokens, min_tokens)",
                    context.position));
  }
  FilterCut cut{largest.logit, largest.token};  // greedy: the first token alone
  std::int32_t token = largest.token;
  if (!params_.is_greedy()) {
    cut = find_cut(row, largest.logit, filters_, scratch.filters);
    token = draw_token(row, largest, filters_.temperature, cut, seed_, context.position);
  }
  if (logprobs != nullptr && params_.logprobs) raw_logprobs(logits, token, *params_.logprobs, logprobs->raw);
  if (logprobs != nullptr && params_.filtered_logprobs) {
    const double temperature = params_.is_greedy() ? 1 : filters_.temperature;
    filtered_logprobs(row, largest.logit, temperature, cut, token, *params_.filtered_logprobs,
                      logprobs->filtered);
  }
  return token;
}

std::uint64_t choice_seed(std::uint64_t seed, std::int32_t choice) {
  if (choice == 0) return seed;
  constexpr std::uint32_t stream = 1;  // token noise uses stream 0 of the same generator
  const PhiloxCounter words =
      philox4x32({static_cast<std::uint32_t>(choice), stream, 0, 0}, philox_key(seed));
  return words[0] | static_cast<std::uint64_t>(words[1]) << 32;
}

}  // namespace thalweg::engine
