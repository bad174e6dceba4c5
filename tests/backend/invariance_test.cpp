// The same bits however a result was computed: chunks, batches, threads, places of the caches, rollback.
#include <gtest/gtest.h>

#include <random>

#include "backend/golden.hpp"
#include "backend/steps.hpp"

namespace thalweg::backend {
namespace {

using model::Precision;
using testing::advance;
using testing::draft;
using testing::Drafts;
using testing::expect_same;
using testing::load_model;
using testing::Logits;
using testing::make_backend;
using testing::make_sequence;
using testing::Sequence;
using testing::step;

const model::Model& tiny() {
  return load_model(testing::source_directory() / "tests/data/tiny/model");
}

std::vector<std::int32_t> random_tokens(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> tokens(count);
  for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random() % tiny().config().vocab_size);
  return tokens;
}

// A text of two pages with an image span across the border of chunks of 17 and 64.
Sequence text_with_image(std::int32_t slot = 0, std::int32_t first_page = 0, std::uint32_t seed = 1) {
  Sequence sequence = make_sequence(random_tokens(150, seed), slot, first_page);
  sequence.image.assign(sequence.tokens.size(), 0);
  for (std::size_t p = 60; p < 70; ++p) {
    sequence.image[p] = 1;
    sequence.tokens[p] = tiny().config().image_token_id;
  }
  return sequence;
}

class Invariance : public ::testing::TestWithParam<Precision> {
 protected:
  std::unique_ptr<Backend> backend(std::size_t pages, std::size_t slots = 1, std::size_t threads = 1) const {
    return make_backend(tiny(), GetParam(), pages, slots, threads);
  }
};

INSTANTIATE_TEST_SUITE_P(Precisions, Invariance,
                         ::testing::Values(Precision::reference, Precision::cache, Precision::float32),
                         [](const auto& test) { return std::string(model::precision_name(test.param)); });

struct Computed {
  Logits logits;
  Drafts drafts;
};

// A sequence alone on a backend of its own, with the draft after it.
Computed alone(Backend& backend, Sequence sequence, std::int64_t chunk) {
  Computed result;
  result.logits = advance(backend, sequence, chunk);
  result.drafts = draft(backend, {{&sequence, 7}})[0];
  return result;
}

TEST_P(Invariance, ChunksOfAnySizeGiveTheSameBits) {
  const Computed whole = alone(*backend(2), text_with_image(), 1000);
  for (const std::int64_t chunk : {1, 3, 17, 64}) {
    const Computed cut = alone(*backend(2), text_with_image(), chunk);
    const std::string what = "chunks of " + std::to_string(chunk);
    expect_same(cut.logits, whole.logits, what);
    expect_same(cut.drafts, whole.drafts, what);
  }
}

TEST_P(Invariance, AnyNumberOfThreadsGivesTheSameBits) {
  const Computed one = alone(*backend(2, 1, 1), text_with_image(), 64);
  for (const std::size_t threads : {2U, 3U}) {
    const Computed more = alone(*backend(2, 1, threads), text_with_image(), 64);
    expect_same(more.logits, one.logits, std::to_string(threads) + " threads");
    expect_same(more.drafts, one.drafts, std::to_string(threads) + " threads");
  }
}

// A backend that has computed something else before: what stale caches hold must not be read.
TEST_P(Invariance, UsedPagesAndSlotsGiveTheSameBitsAsFreshOnes) {
  const auto fresh = backend(2);
  const auto used = backend(2);
  alone(*used, make_sequence(random_tokens(200, 99)), 50);
  const Computed expected = alone(*fresh, text_with_image(), 64);
  const Computed actual = alone(*used, text_with_image(), 64);
  expect_same(actual.logits, expected.logits, "used caches");
  expect_same(actual.drafts, expected.drafts, "used caches");
}

// Five sequences step together: prompt chunks of several sizes, decode rows, verifications of several rows;
// pages and slots are handed out in no order.
TEST_P(Invariance, SequencesInOneStepGiveTheSameBitsAsAlone) {
  constexpr std::size_t kCount = 5;
  const std::int32_t slots[kCount] = {3, 0, 4, 1, 2};
  const std::vector<std::int32_t> pages[kCount] = {{7, 2}, {0, 9}, {4, 3}, {8, 1}, {5, 6}};
  std::vector<Sequence> sequences;
  std::vector<Logits> expected;
  for (std::uint32_t s = 0; s < kCount; ++s) {
    Sequence sequence = s == 2 ? text_with_image(0, 0, 30) : make_sequence(random_tokens(135 + s, 20 + s));
    Sequence copy = sequence;
    expected.push_back(advance(*backend(2), copy, 1000));
    sequence.slot = slots[s];
    sequence.pages = pages[s];
    sequences.push_back(std::move(sequence));
  }
  const auto together = backend(10, kCount);
  std::vector<Logits> actual(kCount);
  std::mt19937 random(5);
  while (true) {
    std::vector<testing::Piece> pieces;
    std::vector<std::size_t> who;
    for (std::size_t s = 0; s < kCount; ++s) {
      const auto left = static_cast<std::int64_t>(sequences[s].tokens.size()) - sequences[s].done;
      const std::int64_t sizes[] = {1, 1, 6, 20, 45};
      const auto rows = static_cast<std::int32_t>(std::min(left, sizes[random() % 5]));
      if (rows == 0 || random() % 4 == 0) continue;
      pieces.push_back({&sequences[s], rows});
      who.push_back(s);
    }
    const bool finished = std::all_of(sequences.begin(), sequences.end(), [](const Sequence& s) {
      return s.done == static_cast<std::int64_t>(s.tokens.size());
    });
    if (finished) break;
    if (pieces.empty()) continue;
    const auto logits = step(*together, pieces);
    for (std::size_t i = 0; i < who.size(); ++i) {
      actual[who[i]].insert(actual[who[i]].end(), logits[i].begin(), logits[i].end());
    }
  }
  for (std::size_t s = 0; s < kCount; ++s) {
    expect_same(actual[s], expected[s], "sequence " + std::to_string(s));
  }
}

TEST_P(Invariance, DraftsOfSeveralSequencesGiveTheSameBitsAsAlone) {
  const auto together = backend(6, 3);
  std::vector<Sequence> sequences;
  for (std::int32_t s = 0; s < 3; ++s) {
    sequences.push_back(make_sequence(random_tokens(10 + 40 * s, 50 + s), 2 - s, 2 * s));
    advance(*together, sequences.back());
  }
  const auto drafts = draft(*together, {{&sequences[2], 7}, {&sequences[0], 7}, {&sequences[1], 7}});
  for (std::size_t s = 0; s < 3; ++s) {
    const Computed expected = alone(*backend(2), make_sequence(sequences[s].tokens), 1000);
    expect_same(drafts[(s + 1) % 3], expected.drafts, "sequence " + std::to_string(s));
  }
}

// Rows of a verification whose tokens turn out wrong are computed again with the right ones: as if they had
// never been. From every position of a compression group, with drafts between, up to the limit.
TEST_P(Invariance, TakingRowsBackLeavesNoTrace) {
  Sequence truth = make_sequence(random_tokens(90, 70));
  const Logits expected = [&] {
    Sequence copy = truth;
    return advance(*backend(1), copy, 1000);
  }();
  const int limit = model::default_backtracking(tiny().config());
  const auto device = backend(1);
  Sequence sequence = truth;
  advance(*device, sequence, 40, 1000);
  std::uint32_t seed = 0;
  while (sequence.done + limit + 1 < static_cast<std::int64_t>(truth.tokens.size())) {
    const std::int64_t accepted_until = sequence.done + 1 + seed % 3;
    draft(*device, {{&sequence, sequence.tokens[sequence.done]}});
    const auto wrong = random_tokens(limit, 1000 + seed++);
    const std::int64_t end = sequence.done + limit;
    for (std::int64_t p = accepted_until; p < end; ++p)
      sequence.tokens[p] = wrong[static_cast<std::size_t>(end - p - 1)];
    const std::int64_t start = sequence.done;
    const Logits logits = advance(*device, sequence, end, 1000);
    for (std::int64_t p = start; p < accepted_until; ++p) {
      ASSERT_TRUE(testing::same_bits(logits[p - start], expected[p])) << "accepted row " << p;
    }
    sequence.tokens = truth.tokens;
    sequence.done = accepted_until;
  }
  const std::int64_t resumed = sequence.done;
  const Logits rest = advance(*device, sequence, 7);
  for (std::size_t i = 0; i < rest.size(); ++i) {
    ASSERT_TRUE(testing::same_bits(rest[i], expected[resumed + i])) << "row " << resumed + i;
  }
  const Computed never = alone(*backend(1), truth, 1000);
  expect_same(draft(*device, {{&sequence, 7}})[0], never.drafts, "after taking rows back");
}

// What a prefix cache, a preemption and a move between machines do.
TEST_P(Invariance, ASequenceMovedByCopyingItsBytesContinuesWithTheSameBits) {
  const Computed expected = alone(*backend(2), text_with_image(), 1000);
  for (const std::int64_t cut : {1, 63, 65, 128, 131, 149}) {
    const auto source = backend(2);
    Sequence sequence = text_with_image();
    advance(*source, sequence, cut, 40);
    const auto target = backend(6, 3);
    Sequence other = make_sequence(random_tokens(100, 3), 1, 0);
    advance(*target, other);
    for (int page = 0; page < 2; ++page) target->write_page(5 - 2 * page, testing::page_bytes(*source, page));
    target->write_slot(2, 0, testing::slot_bytes(*source, 0));
    sequence.slot = 2;
    sequence.pages = {5, 3};
    const Logits rest = advance(*target, sequence, 50);
    const Logits wanted(expected.logits.begin() + cut, expected.logits.end());
    expect_same(rest, wanted, "moved after " + std::to_string(cut));
    expect_same(draft(*target, {{&sequence, 7}})[0], expected.drafts, "moved after " + std::to_string(cut));
  }
}

// Bounded replay: rows of the prompt's tail see shorter decoder windows, but not through how the prompt was
// cut; the global rows are those of the exact computation.
TEST_P(Invariance, BoundedReplayDoesNotDependOnChunksAndKeepsGlobalRowsExact) {
  const int limit = model::default_backtracking(tiny().config());
  const std::int64_t keep = tiny().config().sliding_window + 2 * limit;
  Sequence replayed = text_with_image();
  replayed.decoder_floor = static_cast<std::int64_t>(replayed.tokens.size()) - keep;
  const auto exact = backend(2);
  alone(*exact, text_with_image(), 1000);
  const auto whole = backend(2);
  const Computed expected = alone(*whole, replayed, 1000);
  ASSERT_EQ(static_cast<std::int64_t>(expected.logits.size()), keep);
  const auto layout = exact->page_layout();
  for (const std::int64_t chunk : {1, 17, 64, 130}) {
    const auto device = backend(2);
    const Computed cut = alone(*device, replayed, chunk);
    const std::string what = "chunks of " + std::to_string(chunk);
    expect_same(cut.logits, expected.logits, what);
    expect_same(cut.drafts, expected.drafts, what);
    for (int page = 0; page < 2; ++page) {
      EXPECT_EQ(testing::page_bytes(*device, page), testing::page_bytes(*exact, page))
          << what << ", page " << page;
    }
  }
}

// The replayed tail is shorter than a window here, so what the rings hold before it is another text's.
TEST_P(Invariance, NothingBeforeTheDecoderFloorIsRead) {
  Sequence replayed = make_sequence(random_tokens(60, 85));
  replayed.decoder_floor = 60 - tiny().config().sliding_window / 2;
  const auto used = backend(2);
  alone(*used, make_sequence(random_tokens(200, 86)), 50);
  const Computed expected = alone(*backend(2), replayed, 25);
  const Computed actual = alone(*used, replayed, 25);
  expect_same(actual.logits, expected.logits, "used rings");
  expect_same(actual.drafts, expected.drafts, "used rings");
}

// A replayed prompt goes on decoding, is taken back and drafted from like any other.
TEST_P(Invariance, DecodingAfterBoundedReplayDoesNotDependOnStepSizes) {
  Sequence one = make_sequence(random_tokens(140, 80));
  one.decoder_floor = 100 - 28;
  Sequence many = one;
  const auto a = backend(2);
  const auto b = backend(2);
  advance(*a, one, 100, 1000);
  advance(*b, many, 100, 9);
  expect_same(advance(*a, one, 1), advance(*b, many, 6), "decode rows against verifications");
  expect_same(draft(*a, {{&one, 7}})[0], draft(*b, {{&many, 7}})[0], "draft");
}

TEST_P(Invariance, LogitsOfSomeRowsAreThoseOfAllRows) {
  Sequence sequence = make_sequence(random_tokens(30, 90));
  Sequence copy = sequence;
  const Logits all = advance(*backend(1), copy);
  const auto device = backend(1);
  model::StepPlan plan;
  testing::add_piece(tiny(), {&sequence, 30}, plan);
  plan.logit_rows = {0, 13, 29};
  device->run(plan);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto values = device->logits(i);
    EXPECT_TRUE(testing::same_bits({values.begin(), values.end()}, all[plan.logit_rows[i]])) << i;
  }
  sequence.done = 30;
  Sequence after = copy;
  const auto other = backend(1);
  after.done = 0;
  advance(*other, after);
  expect_same(draft(*device, {{&sequence, 7}})[0], draft(*other, {{&after, 7}})[0], "draft");
}

}  // namespace
}  // namespace thalweg::backend
