// The same answer however it was computed: chunked or whole, alone or in a crowd, cold or from the cache (on
// the device, in host memory, on disk), preempted or not, with or without overlap of planning and computing.
// Log-probabilities of all (or the first 1,000) tokens are compared bit for bit, at temperature 1.
#include "engine_support.hpp"
#include "support/temporary_folder.hpp"

namespace thalweg::engine {
namespace {

using testing::Answer;
using testing::ask;
using testing::model_of;
using testing::random_prompt;
using testing::sampled;

constexpr std::size_t kPrompt = 140;
constexpr std::int64_t kTokens = 8;

enum class Tier { device, host, disk };
enum class Preemption { none, saved, dropped };

struct Hit {
  const char* name;
  std::int64_t at = 0;  ///< tokens reused; 0: cold
  Tier tier = Tier::device;
};

// mini has a window of 64, tiny one of 16; blocks of 128.
const std::vector<Hit> kHits = {{"cold"},
                                {"odd", 101},
                                {"even", 102},
                                {"before the block's end", 127},
                                {"the block's end", 128},
                                {"after the block's end", 129},
                                {"a window long", 64},
                                {"a short window long", 16},
                                {"one token", 1},
                                {"all but the last token", kPrompt - 1},
                                {"host memory", 131, Tier::host},
                                {"host memory, block", 128, Tier::host},
                                {"disk", 132, Tier::disk},
                                {"disk, block", 128, Tier::disk}};

struct Way {
  Hit hit;
  std::int32_t chunk = 0;
  bool crowd = false;
  Preemption preemption = Preemption::none;
  bool asynchronous = false;
  std::string name() const {
    return std::string("chunks of ") + std::to_string(chunk) + (crowd ? ", in a crowd" : ", alone") +
           ", cached: " + hit.name +
           (preemption == Preemption::none    ? ", not preempted"
            : preemption == Preemption::saved ? ", preempted and saved"
                                              : ", preempted and dropped") +
           (asynchronous ? ", asynchronous" : ", synchronous");
  }
};

Request measured(const LoadedModel& model) {
  Request request = sampled(random_prompt(model, kPrompt, 1), kTokens);
  request.sampling.logprobs = std::min(1000, model.model.config().vocab_size);
  return request;
}

// Makes what is cached leave the device: other prompts need its blocks and slots.
void push_out(Engine& engine, const LoadedModel& model, std::int64_t context) {
  for (std::uint64_t i = 0; i < 3; ++i) {
    ask(engine, sampled(random_prompt(model, static_cast<std::size_t>(context) - 2, 100 + i), 1));
    engine.drain();
  }
}

EngineOptions options_of(const Way& way, const std::filesystem::path& folder) {
  EngineOptions options = testing::device_options();
  options.threads = 2;
  // A crowd of 16 needs a row for each.
  options.sequences = way.crowd ? 16 : 1;
  options.batch_tokens = std::max(way.chunk, options.sequences);
  options.asynchronous = way.asynchronous;
  options.snapshot_every = 256;  // hits are where the test wants them
  if (way.hit.tier != Tier::device) {
    options.cache_tokens = 384;
    options.snapshots = 1;
  }
  if (way.hit.tier == Tier::disk) options.disk_cache = folder;
  // Without host memory a preempted sequence is computed again.
  if (way.hit.tier == Tier::disk || way.preemption == Preemption::dropped) options.host_cache_bytes = 0;
  return options;
}

void expect_same(const std::string& model_name, const Way& way, const Answer& cold) {
  SCOPED_TRACE(model_name + ": " + way.name());
  const LoadedModel& model = model_of(model_name);
  const TemporaryFolder folder;
  Engine engine(model, options_of(way, folder.path()));
  const Request request = measured(model);
  if (way.hit.at > 0) {
    std::vector<std::int32_t> head(request.prompt.begin(), request.prompt.begin() + way.hit.at + 1);
    head.back() = 3;  // what is stored is the state before this token
    ask(engine, sampled(std::move(head), 1));
    engine.drain();
    if (way.hit.tier != Tier::device) push_out(engine, model, 384);
  }
  if (way.crowd) {
    for (std::uint64_t i = 0; i < 15; ++i)
      ask(engine, sampled(random_prompt(model, 5 + 2 * i, 50 + i), 9, i));
  }
  // Whoever is urgent takes the only slot away, after the third token.
  std::size_t tokens = 0;
  const auto interrupt = [&](const Event& event) {
    if (way.preemption == Preemption::none || !event.token || ++tokens != 3) return;
    const std::int32_t slots = way.crowd ? 18 : 1;
    for (std::int32_t i = 0; i < slots; ++i) {
      Request urgent = sampled(random_prompt(model, 1, 90), 4);
      urgent.priority = 1;
      ask(engine, std::move(urgent));
    }
  };
  const auto answers = ask(engine, request, interrupt);
  engine.drain();
  engine.check_invariants();
  const Answer& answer = answers->front();
  EXPECT_EQ(answer.tokens, cold.tokens);
  EXPECT_EQ(answer.text, cold.text);
  EXPECT_TRUE(testing::same(answer.logprobs, cold.logprobs)) << "log-probabilities differ";
  EXPECT_EQ(answer.usage.reused_tokens, way.hit.at);
  const EngineStatistics statistics = engine.statistics();
  testing::expect_balanced(statistics);
  if (way.hit.tier == Tier::host) EXPECT_GT(statistics.cache.reused_from_host, 0U);
  if (way.hit.tier == Tier::disk) EXPECT_GT(statistics.cache.reused_from_disk, 0U);
  const SchedulerStatistics& scheduler = statistics.scheduler;
  if (way.preemption != Preemption::none)
    EXPECT_GT(scheduler.preempted_saved + scheduler.preempted_dropped, 0U);
  if (way.preemption == Preemption::dropped) EXPECT_EQ(scheduler.preempted_saved, 0U);
}

class Composition : public ::testing::TestWithParam<std::tuple<std::string, std::size_t>> {};

TEST_P(Composition, GivesTheAnswerOfAColdSynchronousRunAlone) {
  const auto& [name, hit] = GetParam();
  Answer cold;
  {
    EngineOptions options = testing::device_options();
    options.threads = 1;
    options.asynchronous = false;
    Engine engine(model_of(name), options);
    const auto answers = ask(engine, measured(model_of(name)));
    engine.drain();
    cold = answers->front();
  }
  ASSERT_EQ(cold.tokens.size(), static_cast<std::size_t>(kTokens));
  std::size_t index = 0;
  for (const std::int32_t chunk : {1, 17, 512}) {
    for (const bool crowd : {false, true}) {
      for (const Preemption preemption : {Preemption::none, Preemption::saved, Preemption::dropped}) {
        for (const bool asynchronous : {true, false}) {
          // A share of all combinations, another for every hit.
          const std::size_t share = testing::kSanitized ? 18 : name == "mini" ? 9 : 6;
          if (index++ % share != hit % share) continue;
          // Three blocks do not hold a crowd beside the prompt.
          if (crowd && kHits[hit].tier != Tier::device) continue;
          // Host memory would save it.
          if (preemption == Preemption::dropped && kHits[hit].tier == Tier::host) continue;
          // Without host memory nothing is saved.
          if (preemption == Preemption::saved && kHits[hit].tier == Tier::disk) continue;
          expect_same(name, {kHits[hit], chunk, crowd, preemption, asynchronous}, cold);
        }
      }
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<std::string, std::size_t>>& test) {
  std::string name = std::get<0>(test.param) + "_" + kHits[std::get<1>(test.param)].name;
  std::erase_if(name, [](char c) { return c == ',' || c == '\''; });
  std::ranges::replace(name, ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Mini, Composition,
                         ::testing::Combine(::testing::Values("mini"),
                                            ::testing::Range<std::size_t>(0, kHits.size())),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Tiny, Composition,
                         ::testing::Combine(::testing::Values("tiny"),
                                            ::testing::Range<std::size_t>(0, kHits.size())),
                         name_of);

}  // namespace
}  // namespace thalweg::engine
