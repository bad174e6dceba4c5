// Random requests against the cache, with a model that knows from the tokens alone what every state must be,
// and an oracle that knows what was ever published by whom.
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "simulated.hpp"

namespace thalweg::cache {
namespace {

using simulated::State;
using simulated::TemporaryFolder;

struct World {
  const char* name;
  std::uint32_t blocks = 0;
  std::uint32_t slots = 0;
  std::size_t host_bytes = 0;
  std::size_t disk_bytes = 0;
  std::uint32_t keep = 0;
  std::size_t most_live = 0;
};

constexpr std::uint32_t kBlock = 4;
constexpr std::size_t kTenants = 2;
const char* const kSalts[kTenants] = {"first tenant", "second tenant"};

struct Request {
  Sequence sequence;
  std::vector<TokenId> tokens;
  std::vector<ImageSpan> images;
  std::size_t tenant = 0;
  std::int64_t prompt = 0;
  std::int64_t target = 0;  // length at which it finishes
  std::int64_t computed = 0;
  std::int64_t decoder_from = 0;
  Content content() const { return {tokens, images}; }
};

/// How often the interesting things happened.
struct Met {
  std::uint64_t hits = 0;
  std::uint64_t complete = 0;   // admissions compared with everything ever published
  std::uint64_t shortages = 0;  // no block was to be had
  std::uint64_t restored = 0;
  std::uint64_t copies_on_write = 0;
  std::uint64_t evicted_blocks = 0;
  std::uint64_t evicted_snapshots = 0;
  std::uint64_t from_host = 0;
  std::uint64_t from_disk = 0;
  std::uint64_t lost = 0;
  std::array<std::uint64_t, kCuts> cuts{};
};

class Simulation {
 public:
  Simulation(const World& world, std::uint64_t seed)
      : world_(world),
        random_(seed),
        device_(simulated::geometry(kBlock), world.blocks, world.slots),
        cache_(config(), device_),
        model_(cache_, device_, kBlock) {}

  void run(std::uint64_t steps) {
    for (step_ = 0; step_ < steps && !testing::Test::HasFailure(); ++step_) {
      SCOPED_TRACE(std::string(world_.name) + " step " + std::to_string(step_));
      one_step();
      if (step_ % 16 == 0) cache_.check_invariants();
    }
    saved_.clear();
    live_.clear();
    cache_.check_invariants();
    EXPECT_EQ(cache_.available_blocks(), world_.blocks - 1) << "blocks were lost";
  }

  /// Adds what this run met to the sum of all.
  void add_to(Met& met) const {
    const CacheStatistics statistics = cache_.statistics();
    met.hits += met_.hits;
    met.complete += met_.complete;
    met.shortages += met_.shortages;
    met.restored += met_.restored;
    met.copies_on_write += statistics.copies_on_write;
    met.evicted_blocks += statistics.evicted_blocks;
    met.evicted_snapshots += statistics.evicted_snapshots;
    met.from_host += statistics.reused_from_host;
    met.from_disk += statistics.reused_from_disk;
    met.lost += statistics.disk.lost;
    for (std::size_t cut = 0; cut < kCuts; ++cut) met.cuts[cut] += statistics.cuts[cut];
  }

 private:
  CacheConfig config() const {
    return {.geometry = simulated::geometry(kBlock),
            .name = {.model = "simulated",
                     .format = "rows",
                     .mode = world_.keep > 0 ? ReuseMode::replay : ReuseMode::exact,
                     .keep = world_.keep},
            .blocks = world_.blocks,
            .slots = world_.slots,
            .host_bytes = world_.host_bytes,
            .disk_folder = world_.disk_bytes > 0 ? folder_.path() : std::filesystem::path(),
            .disk_bytes = world_.disk_bytes,
            .report = {}};
  }

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool chance(std::uint64_t in) { return below(in) == 0; }

  void one_step() {
    const std::uint64_t kind = below(100);
    if (live_.empty() || (kind < 14 && live_.size() < world_.most_live)) {
      arrive();
    } else if (kind < 17) {
      fork();
    } else if (kind < 20) {
      drop(below(live_.size()));
    } else if (kind < 23) {
      save(below(live_.size()));
    } else if (kind < 27) {
      restore();
    } else if (kind == 27 && world_.disk_bytes > 0) {
      damage_disk();
    } else {
      advance(below(live_.size()));
    }
  }

  /// Prompts branch off earlier conversations, so that prefixes are shared at every length.
  void make_prompt(Request& request) {
    request.tenant = below(kTenants);
    if (!past_.empty() && !chance(4)) {
      const auto& [tokens, images] = past_[below(past_.size())];
      const auto cut = static_cast<std::int64_t>(chance(3) ? tokens.size() : 1 + below(tokens.size()));
      request.tokens.assign(tokens.begin(), tokens.begin() + cut);
      for (const ImageSpan& image : images) {
        if (image.begin + image.tokens <= cut) request.images.push_back(image);
      }
    }
    if (chance(5)) {
      const auto begin = static_cast<std::int64_t>(request.tokens.size());
      const std::uint64_t digest = below(2);
      const auto length = static_cast<std::int64_t>(2 + 3 * digest);  // equal images have equal lengths
      request.images.push_back({begin, length, {digest, 0}});
      request.tokens.resize(static_cast<std::size_t>(begin + length), 99);
    }
    const std::size_t longest = (world_.blocks - 1) * kBlock / 2;
    for (std::size_t more = 1 + below(10); more > 0; --more)
      request.tokens.push_back(static_cast<TokenId>(below(3)));
    if (request.tokens.size() > longest) {
      request.tokens.resize(longest);
      std::erase_if(request.images, [&](const ImageSpan& image) {
        return image.begin + image.tokens > static_cast<std::int64_t>(longest);
      });
    }
  }

  void arrive() {
    Request request;
    make_prompt(request);
    request.prompt = request.content().length();
    request.target = request.prompt + static_cast<std::int64_t>(below(8));
    const Prompt prompt{.content = request.content(), .salt = kSalts[request.tenant]};
    const Hit expected = cache_.peek(prompt);
    std::optional<Admission> admission = cache_.acquire(prompt);
    if (!admission) {
      ASSERT_EQ(live_.size(), world_.slots - 1) << "refused although a slot was not running";
      return drop(below(live_.size()));
    }
    const Hit& hit = admission->hit;
    request.sequence = std::move(admission->sequence);
    request.computed = hit.resume_at;
    if (world_.keep > 0) request.decoder_from = std::max<std::int64_t>(request.prompt - world_.keep, 0);
    ASSERT_LE(hit.resume_at, request.prompt - std::max<std::int64_t>(world_.keep > 0 ? world_.keep : 1, 1) < 0
                                 ? 0
                                 : request.prompt - (world_.keep > 0 ? world_.keep : 1));
    ASSERT_LE(hit.resume_at, expected.resume_at);
    if (world_.host_bytes == 0 && world_.disk_bytes == 0 && hit.resume_at != expected.resume_at) {
      ASSERT_EQ(hit.cut, Cut::no_free_block) << "a hit on the device was not used";
    }
    if (hit.resume_at > 0) {
      ASSERT_TRUE(was_published(request, hit.resume_at)) << "a prefix that this tenant never published";
    }
    expect_longest(request, hit);
    met_.hits += hit.resume_at > 0 ? 1 : 0;
    expect_state(request);
    live_.push_back(std::move(request));
  }

  /// As long as nothing was evicted, lost or left out, the cache must know everything the oracle knows.
  void expect_longest(const Request& request, const Hit& hit) {
    const CacheStatistics statistics = cache_.statistics();
    if (statistics.evicted_blocks + statistics.evicted_snapshots + statistics.snapshots_skipped > 0) return;
    const std::int64_t limit = request.prompt - std::max<std::int64_t>(world_.keep, 1);
    std::int64_t longest = 0;
    for (std::int64_t p = 1; p <= limit; ++p) longest = was_published(request, p) ? p : longest;
    ASSERT_EQ(hit.resume_at, longest);
    ++met_.complete;
  }

  using Published = std::tuple<std::size_t, std::uint64_t, std::uint64_t>;
  Published name(const Request& request, std::int64_t position) const {
    const State state = simulated::encoder_after(request.content(), position);
    return {request.tenant, state.position, state.hash};
  }
  bool was_published(const Request& request, std::int64_t position) const {
    return published_.contains(name(request, position));
  }

  void expect_state(const Request& request) {
    model_.expect_cold_state(request.sequence, request.content(), request.computed, request.decoder_from);
  }

  void advance(std::size_t which) {
    Request& request = live_[which];
    const bool prefill = request.computed < request.prompt;
    if (!prefill && request.computed >= request.target) return finish(which);
    const auto most =
        static_cast<std::uint64_t>((prefill ? request.prompt : request.target) - request.computed);
    const auto take = static_cast<std::int64_t>(1 + below(prefill ? most : std::min<std::uint64_t>(most, 3)));
    const auto drafts = static_cast<std::int64_t>(prefill ? 0 : below(6));
    if (!cache_.reserve(request.sequence, request.computed, request.computed + take + drafts)) {
      return make_room(which);
    }
    while (request.content().length() < request.computed + take) {
      request.tokens.push_back(static_cast<TokenId>(below(3)));
    }
    for (std::int64_t p = 0; p < drafts; ++p) {
      model_.write_row(request.sequence, request.computed + take + p, random_());
    }
    model_.run(request.sequence, request.content(), request.computed, request.computed + take,
               request.decoder_from);
    request.computed += take;
    if (chance(2)) cache_.truncate(request.sequence, request.computed);
    if (!chance(3)) publish(request, chance(2));
  }

  void publish(Request& request, bool snapshot) {
    if (snapshot) published_.insert(name(request, request.computed));
    cache_.publish(request.sequence, request.content(), request.computed, snapshot);
  }

  void finish(std::size_t which) {
    Request& request = live_[which];
    expect_state(request);
    publish(request, true);
    if (past_.size() < 12) {
      past_.emplace_back(request.tokens, request.images);
    } else {
      past_[below(past_.size())] = {request.tokens, request.images};
    }
    drop(which);
  }

  /// No block was to be had: then nothing cached is left, and somebody must go.
  void make_room(std::size_t which) {
    for (std::uint32_t block = 1; block < world_.blocks; ++block) ASSERT_GT(cache_.references(block), 0U);
    ++met_.shortages;
    const std::size_t victim = below(live_.size());
    if (victim != which && chance(2)) return save(victim);
    drop(victim);
  }

  void drop(std::size_t which) {
    if (chance(4)) expect_state(live_[which]);
    std::swap(live_[which], live_.back());
    live_.pop_back();
  }

  void fork() {
    const Request& parent = live_[below(live_.size())];
    std::optional<Sequence> sequence = cache_.fork(parent.sequence);
    if (!sequence) {
      ASSERT_EQ(live_.size(), world_.slots - 1);
      return;
    }
    Request child{.sequence = std::move(*sequence),
                  .tokens = parent.tokens,
                  .images = parent.images,
                  .tenant = parent.tenant,
                  .prompt = parent.prompt,
                  .target = parent.target,
                  .computed = parent.computed,
                  .decoder_from = parent.decoder_from};
    expect_state(child);
    live_.push_back(std::move(child));
  }

  void save(std::size_t which) {
    Request& request = live_[which];
    std::optional<SavedSequence> saved = cache_.save(request.sequence, request.computed);
    if (!saved) return drop(which);
    saved_.emplace_back(std::move(request), std::move(*saved));
    std::swap(live_[which], live_.back());
    live_.pop_back();
  }

  void restore() {
    if (saved_.empty()) return;
    const std::size_t which = below(saved_.size());
    auto& [request, saved] = saved_[which];
    std::optional<Sequence> sequence = cache_.restore(saved);
    if (sequence) {
      request.sequence = std::move(*sequence);
      expect_state(request);
      live_.push_back(std::move(request));
      ++met_.restored;
    } else if (!chance(4)) {
      return;
    }
    std::swap(saved_[which], saved_.back());
    saved_.pop_back();
  }

  void damage_disk() {
    for (const std::filesystem::path& file : folder_.records()) {
      if (chance(8)) damage(file);
    }
  }

  void damage(const std::filesystem::path& file) {
    const std::uint64_t size = std::filesystem::file_size(file);
    switch (size == 0 ? 1 : below(3)) {  // of a file that was cut to nothing no byte can be changed
      case 0:
        std::filesystem::resize_file(file, below(size + 1));
        break;
      case 1:
        std::filesystem::remove(file);
        break;
      default: {
        std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
        const auto offset = static_cast<std::streamoff>(below(size));
        stream.seekg(offset);
        const int byte = stream.get();
        stream.seekp(offset);
        stream.put(static_cast<char>(byte ^ 0x10));
      }
    }
  }

  World world_;
  std::mt19937_64 random_;
  TemporaryFolder folder_;
  simulated::Device device_;
  PrefixCache cache_;
  simulated::Model model_;
  std::vector<Request> live_;
  std::vector<std::pair<Request, SavedSequence>> saved_;
  std::vector<std::pair<std::vector<TokenId>, std::vector<ImageSpan>>> past_;
  std::set<Published> published_;
  std::uint64_t step_ = 0;
  Met met_;
};

const World kWorlds[] = {
    {.name = "exact", .blocks = 80, .slots = 30, .most_live = 4},
    {.name = "exact, few slots", .blocks = 60, .slots = 6, .most_live = 8},
    {.name = "exact, tiny pool", .blocks = 14, .slots = 12, .most_live = 4},
    {.name = "exact, host", .blocks = 40, .slots = 12, .host_bytes = 20'000, .most_live = 6},
    {.name = "replay", .blocks = 80, .slots = 30, .keep = 5, .most_live = 5},
    {.name = "replay, small host", .blocks = 40, .slots = 10, .host_bytes = 5'000, .keep = 5, .most_live = 6},
};

/// Files are slow: fewer steps.
const World kWorldsWithDisk[] = {
    {.name = "exact, host and disk",
     .blocks = 30,
     .slots = 8,
     .host_bytes = 5'000,
     .disk_bytes = 20'000,
     .most_live = 4},
    {.name = "replay, disk", .blocks = 30, .slots = 8, .disk_bytes = 20'000, .keep = 6, .most_live = 4},
};

void run_worlds(std::uint64_t steps_each, std::uint64_t steps_each_with_disk, std::uint64_t seed) {
  Met met;
  const auto run = [&](const World& world, std::uint64_t steps) {
    Simulation simulation(world, seed++);
    simulation.run(steps);
    simulation.add_to(met);
  };
  for (const World& world : kWorlds) run(world, steps_each);
  for (const World& world : kWorldsWithDisk) run(world, steps_each_with_disk);
  EXPECT_GT(met.hits, 1000U);
  EXPECT_GT(met.complete, 20U);
  for (const std::uint64_t count : {met.shortages, met.restored, met.copies_on_write, met.evicted_blocks,
                                    met.evicted_snapshots, met.from_host, met.from_disk}) {
    EXPECT_GT(count, 100U);
  }
  EXPECT_GT(met.lost, 10U);
  for (std::size_t cut = 0; cut < kCuts; ++cut) {
    const bool possible = static_cast<Cut>(cut) != Cut::asked;
    EXPECT_EQ(met.cuts[cut] > 0, possible) << to_text(static_cast<Cut>(cut));
  }
}

TEST(PrefixCacheRandom, EveryHitAndEveryResumeEqualsAColdRunThroughHundredThousandSteps) {
  run_worlds(20'000, 3'000, 1);
}

/// The long mode: --gtest_also_run_disabled_tests --gtest_filter='*TenMillion*' (some minutes).
TEST(PrefixCacheRandom, DISABLED_EveryHitAndEveryResumeEqualsAColdRunThroughTenMillionSteps) {
  run_worlds(1'650'000, 50'000, 1000);
}

}  // namespace
}  // namespace thalweg::cache
