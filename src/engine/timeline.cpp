#include "engine/timeline.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/error.hpp"

namespace thalweg::engine {

std::size_t pages_for(std::int64_t tokens) {
  return static_cast<std::size_t>((tokens + model::kPageTokens - 1) / model::kPageTokens);
}

Timeline::Timeline(backend::Backend& backend) : backend_(backend) {}

void Timeline::plan_chunk(std::span<const std::int32_t> tokens, bool all) {
  const auto rows = static_cast<std::int32_t>(tokens.size());
  plan_.clear();
  plan_.tokens.assign(tokens.begin(), tokens.end());
  plan_.image.assign(tokens.size(), 0);
  model::StepSequence sequence;
  sequence.rows = rows;
  sequence.first_position = length();
  sequence.decoder_floor = decoder_floor_;
  sequence.dropped_rows =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(decoder_floor_ - length(), 0, rows));
  plan_.sequences.push_back(sequence);
  plan_.blocks.resize(pages_for(length() + rows));
  std::iota(plan_.blocks.begin(), plan_.blocks.end(), 0);
  plan_.lookback = backend_.model().lookback();
  for (std::int64_t back = 1; back <= plan_.lookback; ++back) {
    plan_.history.push_back(back <= length() ? tokens_[length() - back] : -1);
  }
  for (std::int32_t row = all ? sequence.dropped_rows : rows - 1; row < rows; ++row)
    plan_.logit_rows.push_back(row);
}

void Timeline::append(std::span<const std::int32_t> tokens, std::size_t chunk, bool all,
                      const OnLogits& on_logits) {
  const int vocab = backend_.model().config().vocab_size;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocab) continue;
    throw InputError("token " + std::to_string(i), "an id below " + std::to_string(vocab),
                     std::to_string(tokens[i]));
  }
  for (std::size_t first = 0; first < tokens.size(); first += chunk) {
    const std::size_t count = std::min(chunk, tokens.size() - first);
    const bool last = first + count == tokens.size();
    plan_chunk(tokens.subspan(first, count), all);
    if (!all && !last) plan_.logit_rows.clear();
    const std::int64_t start = length();
    tokens_.insert(tokens_.end(), tokens.begin() + static_cast<std::ptrdiff_t>(first),
                   tokens.begin() + static_cast<std::ptrdiff_t>(first + count));
    backend_.run(plan_);
    for (std::size_t i = 0; i < plan_.logit_rows.size(); ++i) {
      on_logits(start + plan_.logit_rows[i], backend_.logits(i));
    }
  }
}

void Timeline::append_replayed(std::span<const std::int32_t> tokens, std::int64_t keep, std::size_t chunk,
                               bool all, const OnLogits& on_logits) {
  decoder_floor_ = std::max<std::int64_t>(0, static_cast<std::int64_t>(tokens.size()) - keep);
  append(tokens, chunk, all, on_logits);
}

backend::DraftResult Timeline::draft(std::int32_t token, const backend::DraftChoice& choose) {
  const model::DraftSequence sequence{0, token, length(), decoder_floor_};
  return backend_.draft({&sequence, 1}, choose);
}

}  // namespace thalweg::engine
