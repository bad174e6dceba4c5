#include "cache/prefix_cache.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "simulated.hpp"

namespace thalweg::cache {
namespace {

using simulated::TemporaryFolder;

constexpr std::uint32_t kBlock = 128;

/// `length` tokens of a stream that is the same for the same seed.
std::vector<TokenId> stream(int seed, std::size_t length) {
  std::vector<TokenId> tokens(length);
  for (std::size_t i = 0; i < length; ++i) {
    tokens[i] = static_cast<TokenId>(simulated::mix(static_cast<std::uint64_t>(seed), i) % 1000);
  }
  return tokens;
}

std::vector<TokenId> joined(std::vector<TokenId> a, const std::vector<TokenId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Options {
  std::uint32_t blocks = 64;
  std::uint32_t slots = 16;
  std::size_t host_bytes = 0;
  std::filesystem::path disk_folder = {};
  std::size_t disk_bytes = 0;
  std::uint32_t keep = 0;
  HashFunction hash = xxh3_128;
};

CacheConfig config_of(const Options& options) {
  return {.geometry = simulated::geometry(kBlock),
          .name = {.model = "simulated",
                   .format = "rows of 8 bytes",
                   .mode = options.keep > 0 ? ReuseMode::replay : ReuseMode::exact,
                   .keep = options.keep},
          .blocks = options.blocks,
          .slots = options.slots,
          .host_bytes = options.host_bytes,
          .disk_folder = options.disk_folder,
          .disk_bytes = options.disk_bytes,
          .report = {},
          .key_hash = options.hash};
}

/// A cache over a simulated device, and requests that check every state they see against a cold run.
class Bench {
 public:
  explicit Bench(const Options& options = {})
      : device(simulated::geometry(kBlock), options.blocks, options.slots),
        cache(config_of(options), device),
        model(cache, device, kBlock),
        keep_(options.keep) {}
  ~Bench() { cache.check_invariants(); }

  struct Request {
    Sequence sequence;
    std::vector<TokenId> tokens;
    std::vector<ImageSpan> images;
    std::int64_t computed = 0;
    std::int64_t decoder_from = 0;
    Hit hit;
    Content content() const { return {tokens, images}; }
  };

  Request admit(const std::vector<TokenId>& tokens, std::string_view salt = {},
                std::vector<ImageSpan> images = {}) {
    Request request{.sequence = {}, .tokens = tokens, .images = std::move(images), .hit = {}};
    std::optional<Admission> admission = cache.acquire({.content = request.content(), .salt = salt});
    EXPECT_TRUE(admission.has_value());
    request.sequence = std::move(admission->sequence);
    request.hit = admission->hit;
    request.computed = request.hit.resume_at;
    if (keep_ > 0) request.decoder_from = std::max<std::int64_t>(request.content().length() - keep_, 0);
    model.expect_cold_state(request.sequence, request.content(), request.computed, request.decoder_from);
    return request;
  }

  /// Computes up to `end`; a snapshot at every multiple of `grain` and at `end`.
  void compute(Request& request, std::int64_t end, std::int64_t grain = kBlock) {
    while (request.computed < end) {
      const std::int64_t next = std::min(end, (request.computed / grain + 1) * grain);
      ASSERT_TRUE(cache.reserve(request.sequence, request.computed, next));
      model.run(request.sequence, request.content(), request.computed, next, request.decoder_from);
      request.computed = next;
      cache.publish(request.sequence, request.content(), next, true);
    }
    cache.check_invariants();
  }

  /// A whole request; returns its hit.
  Hit serve(const std::vector<TokenId>& tokens, std::string_view salt = {}, std::int64_t grain = kBlock,
            std::vector<ImageSpan> images = {}) {
    Request request = admit(tokens, salt, std::move(images));
    compute(request, request.content().length(), grain);
    model.expect_cold_state(request.sequence, request.content(), request.computed, request.decoder_from);
    return request.hit;
  }

  simulated::Device device;
  PrefixCache cache;
  simulated::Model model;

 private:
  std::int64_t keep_;
};

TEST(PrefixCache, AColdPromptReusesNothing) {
  Bench bench;
  const Hit hit = bench.serve(stream(1, 300));
  EXPECT_EQ(hit.resume_at, 0);
  EXPECT_EQ(hit.cut, Cut::end_of_cached_prefix);
}

TEST(PrefixCache, PromptsOfNoneAndOneTokenAreServed) {
  Bench bench;
  for (const std::size_t length : {0U, 1U, 0U, 1U}) EXPECT_EQ(bench.serve(stream(1, length)).resume_at, 0);
}

TEST(PrefixCache, TheSamePromptAgainStillComputesItsLastToken) {
  Bench bench;
  bench.serve(stream(1, 256));
  const Hit hit = bench.serve(stream(1, 256));
  EXPECT_EQ(hit.resume_at, 128);
  EXPECT_EQ(hit.matched, 256);
  EXPECT_EQ(hit.replayed, 128);
  EXPECT_EQ(hit.cut, Cut::last_token);
  EXPECT_EQ(bench.serve(stream(1, 257)).resume_at, 256);
}

TEST(PrefixCache, HitAtOddPositionEqualsColdRun) {
  for (const std::size_t odd : {1U, 127U, 129U, 301U}) {
    Bench bench;
    bench.serve(stream(1, odd));
    const Hit hit = bench.serve(joined(stream(1, odd), stream(2, 200)));
    EXPECT_EQ(hit.resume_at, static_cast<std::int64_t>(odd));
    EXPECT_EQ(hit.replayed, 0);
    EXPECT_EQ(hit.cut, Cut::end_of_cached_prefix);
  }
}

TEST(PrefixCache, TwoPromptsSharing127And128And129And255TokensResumeAtTheLastSharedSnapshot) {
  const std::vector<std::pair<std::size_t, std::int64_t>> cases = {
      {127, 0}, {128, 128}, {129, 128}, {255, 128}, {256, 256}};
  for (const auto& [shared, resume_at] : cases) {
    Bench bench;
    bench.serve(joined(stream(1, shared), stream(2, 400)));
    const Hit hit = bench.serve(joined(stream(1, shared), stream(3, 400)));
    EXPECT_EQ(hit.resume_at, resume_at) << shared << " shared tokens";
    EXPECT_EQ(hit.cut, Cut::tokens_differ) << shared << " shared tokens";
  }
}

TEST(PrefixCache, InReplayModeTheTailIsLeftToTheDecoder) {
  const std::vector<std::pair<std::size_t, std::int64_t>> cases = {
      {127, 0}, {128, 128}, {129, 128}, {255, 128}};
  for (const auto& [shared, resume_at] : cases) {
    Bench bench({.keep = 140});
    bench.serve(joined(stream(1, shared), stream(2, 400)));
    EXPECT_EQ(bench.serve(joined(stream(1, shared), stream(3, 400))).resume_at, resume_at);
  }
  Bench bench({.keep = 140});
  bench.serve(stream(1, 512));
  const Hit again = bench.serve(stream(1, 512));
  EXPECT_EQ(again.resume_at, 256) << "the last snapshot at or before 512 - 140";
  EXPECT_EQ(again.cut, Cut::replayed_tail);
  EXPECT_EQ(bench.serve(stream(1, 396)).resume_at, 256);
  EXPECT_EQ(bench.serve(stream(1, 395)).resume_at, 128);
  EXPECT_EQ(bench.serve(stream(1, 100)).resume_at, 0);
}

TEST(PrefixCache, WithoutASnapshotKnownTokensRunAgain) {
  Bench bench;
  bench.serve(stream(1, 700), {}, 512);
  const Hit hit = bench.serve(joined(stream(1, 512 + 128), stream(2, 300)), {}, 512);
  EXPECT_EQ(hit.resume_at, 512);
  EXPECT_EQ(hit.matched, 640);
  EXPECT_EQ(hit.replayed, 128);
  EXPECT_EQ(hit.cut, Cut::no_snapshot);
}

TEST(PrefixCache, ARequestCanAskForEveryRow) {
  Bench bench;
  const std::vector<TokenId> tokens = stream(1, 300);
  bench.serve(tokens);
  const auto admission = bench.cache.acquire({.content = {tokens, {}}, .salt = {}, .max_resume = 0});
  EXPECT_EQ(admission->hit.resume_at, 0);
  EXPECT_EQ(admission->hit.cut, Cut::asked);
  EXPECT_EQ(bench.cache.peek({.content = {tokens, {}}, .salt = {}, .max_resume = 200}).resume_at, 128);
}

TEST(PrefixCache, SaltsNeverShare) {
  Bench bench;
  bench.serve(stream(1, 300), "A");
  EXPECT_EQ(bench.serve(stream(1, 300), "B").resume_at, 0);
  EXPECT_EQ(bench.serve(stream(1, 300), "").resume_at, 0);
  EXPECT_EQ(bench.serve(stream(1, 300), "A").resume_at, 256);
}

TEST(PrefixCache, OneImageDigestOfDifferenceEndsThePrefix) {
  Bench bench;
  const std::vector<TokenId> tokens = stream(1, 500);
  const std::vector<ImageSpan> images = {{130, 200, {1, 1}}, {400, 10, {2, 2}}};
  bench.serve(tokens, {}, kBlock, images);
  EXPECT_EQ(bench.serve(tokens, {}, kBlock, images).resume_at, 384);
  EXPECT_EQ(bench.serve(tokens, {}, kBlock, {{130, 200, {1, 2}}, {400, 10, {2, 2}}}).resume_at, 128);
  EXPECT_EQ(bench.serve(tokens, {}, kBlock, {{130, 200, {1, 1}}, {400, 10, {2, 3}}}).resume_at, 384);
  EXPECT_EQ(bench.serve(tokens).resume_at, 128);
}

TEST(PrefixCache, CollidingKeysAreMissesAndNeverWrongHits) {
  const HashFunction constant = [](std::span<const std::byte>, std::uint64_t) { return Key128{7, 7}; };
  TemporaryFolder folder;
  Bench bench({.blocks = 8,
               .slots = 4,
               .host_bytes = 20'000,
               .disk_folder = folder.path(),
               .disk_bytes = 100'000,
               .hash = constant});
  for (int round = 0; round < 3; ++round) {
    for (int seed = 0; seed < 5; ++seed) {
      bench.serve(stream(seed, 300), "A");
      bench.serve(stream(seed, 300), "B");
      bench.serve(joined(stream(seed, 128), stream(seed + 1, 170)), "A");
    }
  }
  EXPECT_EQ(bench.serve(stream(1, 300), "fresh").resume_at, 0);
}

TEST(PrefixCache, PoolOverrunSeveralTimesNeverFails) {
  for (const std::size_t host_bytes : {0U, 30'000U}) {
    Bench bench({.blocks = 9, .slots = 3, .host_bytes = host_bytes});
    for (int seed = 0; seed < 20; ++seed) bench.serve(stream(seed, 800 + static_cast<std::size_t>(seed)));
    EXPECT_EQ(bench.cache.available_blocks(), 8U);
    EXPECT_GT(bench.cache.statistics().evicted_blocks, 50U);
  }
}

TEST(PrefixCache, ASequenceThatFillsThePoolExactlyIsServed) {
  Bench bench({.blocks = 5, .slots = 2});
  bench.serve(stream(1, 512));
  bench.serve(stream(2, 512));
  Bench::Request request = bench.admit(stream(3, 513));
  bench.compute(request, 512);
  EXPECT_FALSE(bench.cache.reserve(request.sequence, 512, 513));
}

TEST(PrefixCache, WithASingleSlotSequencesRunWithoutSnapshots) {
  Bench bench({.blocks = 32, .slots = 2});
  {
    Bench::Request request = bench.admit(stream(1, 300));
    bench.compute(request, 300);
    EXPECT_EQ(bench.cache.statistics().snapshots_taken, 0U);
    EXPECT_GT(bench.cache.statistics().snapshots_skipped, 0U);
    EXPECT_FALSE(bench.cache.acquire({.content = request.content(), .salt = {}}).has_value());
  }
  EXPECT_EQ(bench.serve(stream(1, 300)).resume_at, 0);
}

TEST(PrefixCache, TheLastSlotMovesFromASnapshotToTheSequence) {
  Bench bench({.blocks = 32, .slots = 3});
  bench.serve(stream(1, 131));
  const std::vector<TokenId> other = stream(2, 50);
  const auto running = bench.cache.acquire({.content = {other, {}}, .salt = {}});
  ASSERT_TRUE(running.has_value());
  const Hit hit = bench.serve(joined(stream(1, 131), stream(3, 5)));
  EXPECT_EQ(hit.resume_at, 131);
}

TEST(PrefixCache, AnAbortedRequestGivesEverythingBack) {
  Bench bench;
  {
    Bench::Request request = bench.admit(stream(1, 700));
    ASSERT_TRUE(bench.cache.reserve(request.sequence, 0, 700));
    bench.cache.check_invariants();
  }
  EXPECT_EQ(bench.cache.available_blocks(), 63U);
}

TEST(PrefixCache, ForkCopiesTheTailBeforeWriting) {
  Bench bench;
  Bench::Request parent = bench.admit(joined(stream(1, 300), stream(2, 10)));
  bench.compute(parent, 300);
  std::optional<Sequence> forked = bench.cache.fork(parent.sequence);
  ASSERT_TRUE(forked.has_value());
  Bench::Request child{.sequence = std::move(*forked),
                       .tokens = joined(stream(1, 300), stream(3, 10)),
                       .images = {},
                       .computed = 300,
                       .hit = {}};
  EXPECT_EQ(child.sequence.blocks()[2], parent.sequence.blocks()[2]);
  bench.compute(child, 305);
  bench.compute(parent, 310);
  bench.compute(child, 310);
  EXPECT_NE(child.sequence.blocks()[2], parent.sequence.blocks()[2]);
  EXPECT_EQ(child.sequence.blocks()[1], parent.sequence.blocks()[1]);
  bench.model.expect_cold_state(parent.sequence, parent.content(), 310, 0);
  bench.model.expect_cold_state(child.sequence, child.content(), 310, 0);
  EXPECT_EQ(bench.cache.statistics().copies_on_write, 1U);
}

TEST(PrefixCache, AForkOutlivesItsParentAndUnpublishedBlocks) {
  Bench bench;
  Bench::Request parent = bench.admit(stream(1, 400));
  ASSERT_TRUE(bench.cache.reserve(parent.sequence, 0, 300));
  bench.model.run(parent.sequence, parent.content(), 0, 300);
  Sequence child = std::move(*bench.cache.fork(parent.sequence));
  bench.cache.publish(parent.sequence, parent.content(), 300, true);
  parent.sequence.reset();
  for (int seed = 2; seed < 20; ++seed) bench.serve(stream(seed, 600));
  bench.model.expect_cold_state(child, parent.content(), 300, 0);
}

TEST(PrefixCache, SharedBlocksAreNeverWritable) {
  Bench bench;
  Bench::Request first = bench.admit(stream(1, 300));
  bench.compute(first, 300);
  Bench::Request second = bench.admit(stream(1, 301));
  EXPECT_EQ(second.hit.resume_at, 300);
  EXPECT_EQ(first.sequence.blocks()[1], second.sequence.blocks()[1]);
  EXPECT_THROW(bench.cache.reserve(second.sequence, 255, 301), BrokenInvariant);
  EXPECT_THROW(bench.cache.truncate(second.sequence, 128), BrokenInvariant);
  ASSERT_TRUE(bench.cache.reserve(second.sequence, 300, 301));
  EXPECT_EQ(bench.cache.references(second.sequence.blocks()[2]), 1U);
}

TEST(PrefixCache, RejectedDraftsLeaveNoTrace) {
  Bench bench;
  Bench::Request request = bench.admit(stream(1, 300));
  bench.compute(request, 254);
  ASSERT_TRUE(bench.cache.reserve(request.sequence, 254, 260));
  for (std::int64_t p = 255; p < 260; ++p) bench.model.write_row(request.sequence, p, 666);
  bench.model.run(request.sequence, request.content(), 254, 255);
  request.computed = 255;
  bench.cache.truncate(request.sequence, 255);
  EXPECT_EQ(request.sequence.blocks().size(), 2U);
  bench.compute(request, 300);
  bench.model.expect_cold_state(request.sequence, request.content(), 300, 0);
}

TEST(PrefixCache, EvictionOfUnreferencedNodesChangesSpeedOnly) {
  Bench bench({.blocks = 12, .slots = 6});
  const std::vector<TokenId> prompt = stream(1, 600);
  bench.serve(prompt);
  std::int64_t longest = bench.cache.peek({.content = {prompt, {}}, .salt = {}}).resume_at;
  EXPECT_EQ(longest, 512);
  for (std::size_t pressure = 1; pressure <= 11; ++pressure) {
    Bench::Request other = bench.admit(stream(100, pressure * kBlock));
    ASSERT_TRUE(bench.cache.reserve(other.sequence, other.computed, other.content().length()));
    const std::int64_t found = bench.cache.peek({.content = {prompt, {}}, .salt = {}}).resume_at;
    EXPECT_LE(found, longest);
    longest = found;
  }
  EXPECT_EQ(longest, 0);
  bench.serve(prompt);
}

TEST(PrefixCache, TheOldestPrefixIsEvictedFirstAndLeavesBeforeRoots) {
  Bench bench({.blocks = 10, .slots = 16});
  const std::vector<TokenId> old_prompt = stream(1, 385);
  const std::vector<TokenId> new_prompt = stream(2, 385);
  bench.serve(old_prompt);
  bench.serve(new_prompt);
  Bench::Request other = bench.admit(stream(3, 500));
  ASSERT_TRUE(bench.cache.reserve(other.sequence, 0, 500));
  EXPECT_EQ(bench.cache.peek({.content = {new_prompt, {}}, .salt = {}}).resume_at, 384);
  EXPECT_EQ(bench.cache.peek({.content = {old_prompt, {}}, .salt = {}}).resume_at, 128);
}

TEST(PrefixCache, LookingDoesNotChangeWhatIsEvictedNext) {
  Bench bench({.blocks = 6, .slots = 16});
  const std::vector<TokenId> old_prompt = stream(1, 256);
  bench.serve(old_prompt);
  bench.serve(stream(2, 256));
  for (int i = 0; i < 5; ++i) bench.cache.peek({.content = {old_prompt, {}}, .salt = {}});
  bench.serve(stream(3, 256));
  EXPECT_LT(bench.cache.peek({.content = {old_prompt, {}}, .salt = {}}).matched, 256);
}

TEST(PrefixCache, EvictedPrefixesComeBackFromTheHostTier) {
  Bench bench({.blocks = 9, .slots = 3, .host_bytes = 100'000});
  bench.serve(stream(1, 701));
  bench.serve(stream(2, 900));
  const Hit hit = bench.serve(joined(stream(1, 701), stream(3, 30)));
  EXPECT_EQ(hit.resume_at, 701);
  EXPECT_EQ(hit.from_host, 701);
  EXPECT_EQ(hit.from_disk, 0);
}

TEST(PrefixCache, EvictedPrefixesComeBackFromTheDiskTier) {
  TemporaryFolder folder;
  Bench bench({.blocks = 9, .slots = 3, .disk_folder = folder.path(), .disk_bytes = 100'000});
  bench.serve(stream(1, 701));
  bench.serve(stream(2, 900));
  const Hit hit = bench.serve(joined(stream(1, 701), stream(3, 30)));
  EXPECT_EQ(hit.resume_at, 701);
  EXPECT_EQ(hit.from_disk, 701);
}

TEST(PrefixCache, AFlushedCacheIsWarmAfterARestart) {
  for (const std::size_t host_bytes : {0U, 5'000U, 100'000U}) {
    TemporaryFolder folder;
    const Options options{.host_bytes = host_bytes, .disk_folder = folder.path(), .disk_bytes = 1'000'000};
    {
      Bench bench(options);
      bench.serve(stream(1, 701), "A");
      bench.cache.flush();
    }
    Bench bench(options);
    EXPECT_EQ(bench.serve(joined(stream(1, 701), stream(2, 9)), "B").resume_at, 0);
    const Hit hit = bench.serve(joined(stream(1, 701), stream(2, 9)), "A");
    EXPECT_EQ(hit.resume_at, 701);
    EXPECT_EQ(hit.from_disk, 701);
  }
}

TEST(PrefixCache, ALostRecordOnDiskShortensTheHit) {
  TemporaryFolder folder;
  const Options options{.disk_folder = folder.path(), .disk_bytes = 1'000'000};
  {
    Bench bench(options);
    bench.serve(stream(1, 700));
    bench.cache.flush();
  }
  Bench bench(options);
  // Change the last byte of every block of KV; the snapshots stay as they are.
  const std::size_t block_record = encoded_bytes(kBlock, 0, simulated::geometry(kBlock).block_bytes);
  for (const auto& file : folder.records()) {
    if (std::filesystem::file_size(file) != block_record) continue;
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(block_record - 1));
    stream.put('\x55');
  }
  const Hit hit = bench.serve(stream(1, 720));
  EXPECT_EQ(hit.resume_at, 0);
  EXPECT_EQ(hit.cut, Cut::record_lost);
  EXPECT_EQ(bench.cache.statistics().disk.lost, 1U) << "the first block is enough to end the prefix";
  EXPECT_EQ(bench.serve(stream(1, 720)).resume_at, 700);
}

TEST(PrefixCache, EnginesOfAnotherModelFormatOrModeNeverShareADiskTier) {
  TemporaryFolder folder;
  const auto serve = [&](const Namespace& name) {
    simulated::Device device(simulated::geometry(kBlock), 64, 16);
    CacheConfig config = config_of({.disk_folder = folder.path(), .disk_bytes = 1'000'000});
    config.name = name;
    PrefixCache cache(config, device);
    const std::vector<TokenId> tokens = stream(1, 500);
    Admission admission = std::move(*cache.acquire({.content = {tokens, {}}, .salt = {}}));
    EXPECT_TRUE(cache.reserve(admission.sequence, admission.hit.resume_at, 300));
    cache.publish(admission.sequence, {tokens, {}}, 300, true);
    cache.flush();
    return admission.hit.resume_at;
  };
  EXPECT_EQ(serve({.model = "a", .format = "f"}), 0);
  EXPECT_EQ(serve({.model = "b", .format = "f"}), 0);
  EXPECT_EQ(serve({.model = "a", .format = "g"}), 0);
  EXPECT_EQ(serve({.model = "a", .format = "f", .mode = ReuseMode::replay, .keep = 140}), 0);
  EXPECT_EQ(serve({.model = "a", .format = "f", .mode = ReuseMode::replay, .keep = 141}), 0);
  EXPECT_EQ(serve({.model = "a", .format = "f"}), 300);
}

TEST(PrefixCache, APreemptedSequenceComesBackBitForBitInOtherBlocks) {
  for (const std::uint32_t keep : {0U, 140U}) {
    Bench bench({.blocks = 9, .slots = 4, .host_bytes = 60'000, .keep = keep});
    Bench::Request request = bench.admit(stream(1, 600));
    bench.compute(request, 555, 512);
    const std::vector<BlockId> before(request.sequence.blocks().begin(), request.sequence.blocks().end());
    std::optional<SavedSequence> saved = bench.cache.save(request.sequence, 555);
    ASSERT_TRUE(saved.has_value());
    EXPECT_FALSE(request.sequence);
    EXPECT_EQ(bench.cache.available_blocks(), 8U);
    for (int seed = 2; seed < 6; ++seed) bench.serve(stream(seed, 900));
    std::optional<Sequence> restored = bench.cache.restore(*saved);
    ASSERT_TRUE(restored.has_value());
    request.sequence = std::move(*restored);
    bench.model.expect_cold_state(request.sequence, request.content(), 555, request.decoder_from);
    bench.compute(request, 600);
    bench.model.expect_cold_state(request.sequence, request.content(), 600, request.decoder_from);
    EXPECT_THROW(bench.cache.restore(*saved), BrokenInvariant);
  }
}

TEST(PrefixCache, APreemptedSequenceSharesWhatIsStillIndexed) {
  Bench bench({.host_bytes = 60'000});
  Bench::Request request = bench.admit(stream(1, 600));
  bench.compute(request, 555);
  const std::vector<BlockId> before(request.sequence.blocks().begin(), request.sequence.blocks().end());
  std::optional<SavedSequence> saved = bench.cache.save(request.sequence, 555);
  const Sequence restored = std::move(*bench.cache.restore(*saved));
  EXPECT_TRUE(std::equal(before.begin(), before.end() - 1, restored.blocks().begin()));
}

TEST(PrefixCache, ASequenceIsNotSavedBeyondTheHostBudget) {
  for (const std::size_t host_bytes : {0U, 5'000U}) {
    Bench bench({.host_bytes = host_bytes});
    Bench::Request request = bench.admit(stream(1, 600));
    bench.compute(request, 555);
    EXPECT_FALSE(bench.cache.save(request.sequence, 555).has_value());
    EXPECT_TRUE(request.sequence) << "a sequence that cannot be saved goes on";
    bench.compute(request, 600);
    bench.model.expect_cold_state(request.sequence, request.content(), 600, 0);
  }
}

TEST(PrefixCache, ARestoreThatFindsNoRoomCanBeTriedAgain) {
  Bench bench({.blocks = 9, .slots = 4, .host_bytes = 60'000});
  Bench::Request request = bench.admit(stream(1, 600));
  bench.compute(request, 600);
  std::optional<SavedSequence> saved = bench.cache.save(request.sequence, 600);
  {
    Bench::Request other = bench.admit(stream(2, 900));
    bench.compute(other, 900);
    EXPECT_FALSE(bench.cache.restore(*saved).has_value());
    bench.cache.check_invariants();
  }
  const Sequence restored = std::move(*bench.cache.restore(*saved));
  bench.model.expect_cold_state(restored, request.content(), 600, 0);
}

TEST(PrefixCache, StatisticsAddUp) {
  Bench bench({.blocks = 9, .slots = 3, .host_bytes = 100'000});
  bench.serve(stream(1, 701));
  bench.serve(stream(2, 900));
  bench.serve(stream(1, 720));
  const CacheStatistics statistics = bench.cache.statistics();
  EXPECT_EQ(statistics.prompts, 3U);
  EXPECT_EQ(statistics.prompt_tokens, 701U + 900U + 720U);
  EXPECT_EQ(statistics.reused_tokens, 701U);
  EXPECT_EQ(statistics.reused_from_host, 701U);
  EXPECT_EQ(statistics.cuts[static_cast<std::size_t>(Cut::end_of_cached_prefix)], 2U);
  EXPECT_EQ(statistics.cuts[static_cast<std::size_t>(Cut::tokens_differ)], 1U);
  EXPECT_GT(statistics.evicted_blocks, 0U);
  EXPECT_GT(statistics.evicted_snapshots, 0U);
  EXPECT_EQ(statistics.host.hits, 6U);
}

TEST(PrefixCache, ImpossibleSizesAreRefused) {
  simulated::Device device(simulated::geometry(kBlock), 4, 4);
  const auto with = [](auto change) {
    CacheConfig config = config_of({});
    change(config);
    return config;
  };
  EXPECT_THROW(PrefixCache(with([](CacheConfig& c) { c.blocks = 1; }), device), UsageError);
  EXPECT_THROW(PrefixCache(with([](CacheConfig& c) { c.slots = 0; }), device), UsageError);
  EXPECT_THROW(PrefixCache(with([](CacheConfig& c) { c.geometry.block_bytes = 0; }), device), UsageError);
  EXPECT_THROW(PrefixCache(with([](CacheConfig& c) { c.name.mode = ReuseMode::replay; }), device),
               UsageError);
  EXPECT_THROW(PrefixCache(with([](CacheConfig& c) { c.name.keep = 140; }), device), UsageError);
  EXPECT_THROW(PrefixCache(with([](CacheConfig& c) { c.disk_folder = "x"; }), device), UsageError);
  EXPECT_THROW(PrefixCache(with([](CacheConfig& c) { c.disk_bytes = 9; }), device), UsageError);
}

}  // namespace
}  // namespace thalweg::cache
