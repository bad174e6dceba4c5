#include "engine/sampling/penalties.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace thalweg::engine {
namespace {

std::size_t first_slot(std::int32_t token, std::size_t slots) {
  // Multiplicative hashing: neighbouring ids, which real prompts are full of, land far apart.
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(token)) * 0x9E3779B97F4A7C15) >>
         (64 - std::countr_zero(slots));
}

}  // namespace

TokenCounts::TokenCounts(std::span<const std::int32_t> prompt, std::size_t reserve_output) {
  output_.reserve(reserve_output);
  grow(prompt.size() + reserve_output);
  for (const std::int32_t token : prompt) ++entry_of(token).prompt;
}

void TokenCounts::append(std::int32_t token) {
  ++entry_of(token).output;
  output_.push_back(token);
}

void TokenCounts::rollback(std::size_t count) {
  if (count > output_.size())
    throw std::out_of_range("TokenCounts::rollback: more tokens than were appended");
  for (; count > 0; --count) {
    --entry_of(output_.back()).output;
    output_.pop_back();
  }
}

TokenCounts::Entry& TokenCounts::entry_of(std::int32_t token) {
  if (2 * (entries_.size() + 1) > slots_.size()) grow(2 * (entries_.size() + 1));
  std::size_t slot = first_slot(token, slots_.size());
  while (slots_[slot] >= 0) {
    Entry& entry = entries_[static_cast<std::size_t>(slots_[slot])];
    if (entry.token == token) return entry;
    slot = (slot + 1) % slots_.size();
  }
  slots_[slot] = static_cast<std::int32_t>(entries_.size());
  return entries_.emplace_back(Entry{token, 0, 0});
}

void TokenCounts::grow(std::size_t entries) {
  entries_.reserve(entries);
  slots_.assign(std::bit_ceil(std::max<std::size_t>(2 * entries + 2, 16)), -1);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    std::size_t slot = first_slot(entries_[i].token, slots_.size());
    while (slots_[slot] >= 0) slot = (slot + 1) % slots_.size();
    slots_[slot] = static_cast<std::int32_t>(i);
  }
}

void apply_penalties(std::span<float> logits, const TokenCounts& counts, const SamplingParams& params) {
  const auto vocab = static_cast<std::int64_t>(logits.size());
  for (const TokenCounts::Entry& entry : counts.entries()) {
    if (entry.token < 0 || entry.token >= vocab) continue;  // image placeholders lie behind the vocabulary
    if (entry.prompt == 0 && entry.output == 0) continue;
    float& logit = logits[static_cast<std::size_t>(entry.token)];
    double value = logit;
    value = value > 0 ? value / params.repetition_penalty : value * params.repetition_penalty;
    if (entry.output > 0) {
      value -= params.frequency_penalty * entry.output;
      value -= params.presence_penalty;
    }
    logit = static_cast<float>(value);
  }
}

}  // namespace thalweg::engine
