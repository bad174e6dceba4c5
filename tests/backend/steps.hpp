// Sequences on a backend, stepped in any mixture: the shortest way to make the plans a scheduler makes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "backend/backend.hpp"
#include "support/device.hpp"

namespace thalweg::backend::testing {

/// A text and where its caches lie.
struct Sequence {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint8_t> image;  ///< flags of `tokens`; empty: none
  std::int32_t slot = 0;
  std::vector<std::int32_t> pages;
  std::int64_t done = 0;  ///< positions computed
  std::int64_t decoder_floor = 0;

  bool is_image(std::int64_t position) const { return !image.empty() && image[position] != 0; }
};

/// A sequence in slot `slot` whose pages are consecutive from `first_page`.
inline Sequence make_sequence(std::vector<std::int32_t> tokens, std::int32_t slot = 0,
                              std::int32_t first_page = 0) {
  Sequence sequence;
  sequence.pages.resize(tokens.size() / model::kPageTokens + 1);
  std::iota(sequence.pages.begin(), sequence.pages.end(), first_page);
  sequence.tokens = std::move(tokens);
  sequence.slot = slot;
  return sequence;
}

/// The next `rows` positions of a sequence.
struct Piece {
  Sequence* sequence;
  std::int32_t rows;
};

using Logits = std::vector<std::vector<float>>;  ///< a row for each position that has logits

/// Adds the next rows of a sequence to a plan; logits of all rows that keep a decoder half.
inline void add_piece(const model::Model& model, const Piece& piece, model::StepPlan& plan) {
  const Sequence& s = *piece.sequence;
  model::StepSequence part;
  part.slot = s.slot;
  part.first_row = static_cast<std::int32_t>(plan.tokens.size());
  part.rows = piece.rows;
  part.first_position = s.done;
  part.first_block = static_cast<std::int32_t>(plan.blocks.size());
  part.decoder_floor = s.decoder_floor;
  part.dropped_rows =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(s.decoder_floor - s.done, 0, piece.rows));
  const auto needed = static_cast<std::ptrdiff_t>((s.done + piece.rows - 1) / model::kPageTokens + 1);
  plan.blocks.insert(plan.blocks.end(), s.pages.begin(), s.pages.begin() + needed);
  plan.lookback = model.lookback();
  for (std::int64_t back = 1; back <= plan.lookback; ++back) {
    const std::int64_t position = s.done - back;
    plan.history.push_back(position < 0 || s.is_image(position) ? -1 : s.tokens[position]);
  }
  for (std::int32_t i = 0; i < piece.rows; ++i) {
    plan.tokens.push_back(s.tokens[s.done + i]);
    plan.image.push_back(s.is_image(s.done + i) ? 1 : 0);
    if (i >= part.dropped_rows) plan.logit_rows.push_back(part.first_row + i);
  }
  plan.sequences.push_back(part);
}

/// Runs one step of all pieces and advances their sequences; logits piece by piece.
inline std::vector<Logits> step(Backend& backend, const std::vector<Piece>& pieces) {
  model::StepPlan plan;
  for (const Piece& piece : pieces) add_piece(backend.model(), piece, plan);
  backend.run(plan);
  std::vector<Logits> result;
  std::size_t row = 0;
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    Logits& logits = result.emplace_back();
    const model::StepSequence& part = plan.sequences[p];
    for (std::int32_t i = part.dropped_rows; i < part.rows; ++i) {
      const auto values = backend.logits(row++);
      logits.emplace_back(values.begin(), values.end());
    }
    pieces[p].sequence->done += pieces[p].rows;
  }
  return result;
}

/// Computes a sequence up to position `end` in chunks of at most `chunk`; logits of all positions that have
/// any.
inline Logits advance(Backend& backend, Sequence& sequence, std::int64_t end, std::int64_t chunk) {
  Logits all;
  while (sequence.done < end) {
    const auto rows = static_cast<std::int32_t>(std::min(chunk, end - sequence.done));
    Logits some = std::move(step(backend, {{&sequence, rows}})[0]);
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

/// All of a sequence's tokens.
inline Logits advance(Backend& backend, Sequence& sequence, std::int64_t chunk = 1 << 20) {
  return advance(backend, sequence, static_cast<std::int64_t>(sequence.tokens.size()), chunk);
}

/// Greedy drafts of a block with their logits and confidences.
struct Drafts {
  std::vector<std::int32_t> tokens;
  Logits logits;
  std::vector<float> confidence;
};

/// Drafts for sequences that have been computed up to `done`; `token` is the one that follows.
struct DraftPiece {
  const Sequence* sequence;
  std::int32_t token;
};

inline std::vector<Drafts> draft(Backend& backend, const std::vector<DraftPiece>& pieces) {
  std::vector<model::DraftSequence> sequences;
  for (const DraftPiece& piece : pieces) {
    sequences.push_back(
        {piece.sequence->slot, piece.token, piece.sequence->done, piece.sequence->decoder_floor});
  }
  std::vector<Drafts> drafts(pieces.size());
  const DraftResult result =
      backend.draft(sequences, [&](std::int32_t s, int, std::span<const float> logits) {
        drafts[s].logits.emplace_back(logits.begin(), logits.end());
        const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
        return static_cast<std::int32_t>(best);
      });
  const std::size_t block = result.tokens.size() / pieces.size();
  for (std::size_t s = 0; s < pieces.size(); ++s) {
    const auto from = static_cast<std::ptrdiff_t>(s * block);
    const auto to = static_cast<std::ptrdiff_t>((s + 1) * block);
    drafts[s].tokens.assign(result.tokens.begin() + from, result.tokens.begin() + to);
    drafts[s].confidence.assign(result.confidence_logits.begin() + from,
                                result.confidence_logits.begin() + to);
  }
  return drafts;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// The bytes of a whole page or slot.
inline std::vector<std::uint8_t> page_bytes(const Backend& backend, std::int32_t page) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(backend.page_layout().stride));
  backend.read_page(page, bytes);
  return bytes;
}
inline std::vector<std::uint8_t> slot_bytes(const Backend& backend, std::int32_t slot) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(backend.slot_layout().stride));
  backend.read_slot(slot, 0, bytes);
  return bytes;
}

/// Equal bit for bit, row by row.
inline void expect_same(const Logits& actual, const Logits& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_TRUE(same_bits(actual[i], expected[i])) << what << ", row " << i;
  }
}

inline void expect_same(const Drafts& actual, const Drafts& expected, const std::string& what) {
  EXPECT_EQ(actual.tokens, expected.tokens) << what;
  expect_same(actual.logits, expected.logits, what + ", drafts");
  EXPECT_TRUE(same_bits(actual.confidence, expected.confidence)) << what << ", confidence";
}

inline std::unique_ptr<Backend> make_backend(const model::Model& model, model::Precision precision,
                                             std::size_t pages, std::size_t slots = 1,
                                             std::size_t threads = 1) {
  BackendOptions options;
  options.device = kDevice;
  options.precision = precision;
  options.threads = threads;
  options.pages = pages;
  options.slots = slots;
  return backend::make_backend(model, options);
}

}  // namespace thalweg::backend::testing
