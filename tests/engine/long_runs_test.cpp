// Runs that say something by their length: by hand, with --gtest_also_run_disabled_tests.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <random>

#include "engine_support.hpp"
#include "support/temporary_folder.hpp"

namespace thalweg::engine {
namespace {

using testing::ask;
using testing::model_of;
using testing::random_prompt;
using testing::sampled;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

long resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stol(line.substr(6));
  }
  return 0;
}

// One minute of arrivals, aborts, priorities, deadlines and tenants on a pool that is too small for them,
// with all three tiers. More minutes: --gtest_repeat=N; memory must not grow from one to the next.
TEST(Soak, DISABLED_OneMinuteOfRandomLoad) {
  const LoadedModel& model = model_of("mini");
  static std::uint64_t seed = 0;
  std::mt19937_64 random(++seed);
  const TemporaryFolder folder;
  EngineOptions options = testing::device_options();
  options.sequences = 12;
  options.batch_tokens = 96;
  options.cache_tokens = 2048;
  options.snapshots = 12;
  options.snapshot_every = 128;
  options.host_cache_bytes = std::size_t{8} << 20;
  options.disk_cache = folder.path();
  options.disk_cache_bytes = std::size_t{32} << 20;
  Engine engine(model, options);
  const auto begin = Clock::now();
  std::uint64_t submitted = 0;
  while (seconds_since(begin) < 60 && !HasFailure()) {
    const EngineStatistics now = engine.statistics();
    if (now.waiting > 40) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    Request request = sampled(random_prompt(model, 900, random() % 5), 1 + random() % 60, random());
    request.prompt.resize(1 + random() % (random() % 4 == 0 ? 900 : 120));
    request.sampling.n = random() % 10 == 0 ? 3 : 1;
    request.sampling.repetition_penalty = random() % 4 == 0 ? 1.2 : 1;
    request.priority = static_cast<int>(random() % 8 == 0);
    if (random() % 3 == 0) request.cache_salt = "tenant " + std::to_string(random() % 3);
    if (random() % 20 == 0) request.deadline = Clock::now() + std::chrono::milliseconds(random() % 300);
    const RequestId id = engine.submit(std::move(request), [](const Event&) {});
    ++submitted;
    if (random() % 6 == 0) engine.cancel(id - random() % std::min<std::uint64_t>(id, 20));
  }
  engine.drain();
  engine.check_invariants();
  const EngineStatistics s = engine.statistics();
  testing::expect_balanced(s);
  EXPECT_EQ(s.admitted, submitted);
  EXPECT_EQ(s.finished + s.aborted, submitted);
  EXPECT_EQ(s.free_blocks, 16U);
  std::printf(
      "%lu requests (%lu aborted), %lu steps, %lu rows, %lu preempted (%lu dropped), %lu of %lu prompt "
      "tokens reused "
      "(%lu from host memory, %lu from disk), %u of 16 blocks free, %ld KiB resident\n",
      s.admitted, s.aborted, s.steps, s.rows, s.scheduler.preempted_saved + s.scheduler.preempted_dropped,
      s.scheduler.preempted_dropped, s.reused_tokens, s.prompt_tokens, s.cache.reused_from_host,
      s.cache.reused_from_disk, s.free_blocks, resident_kib());
}

}  // namespace
}  // namespace thalweg::engine
