// The device's threads allocate nothing while 64 answers grow. Replaces operator new of the whole test
// program.
#include <atomic>
#include <cstdlib>
#include <new>

#include "engine_support.hpp"

namespace {

// Set by threads that may allocate: the test's and the engine's. All others belong to the device.
thread_local bool on_host = false;
std::atomic<bool> counting{false};
std::atomic<std::size_t> allocations{0};

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void* operator new(std::size_t size) {
  if (counting.load(std::memory_order_relaxed) && !on_host) ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void* operator new[](std::size_t size) {
  return operator new(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace thalweg::engine {
namespace {

using testing::ask;
using testing::model_of;
using testing::random_prompt;
using testing::sampled;

// Decodes with everything a request may ask of the device; returns the allocations of its threads between the
// time when all answers have 20 tokens and the first end.
std::uint64_t allocations_of_a_round(Engine& engine, const LoadedModel& model) {
  constexpr std::size_t kRequests = 64;
  constexpr std::int64_t kTokens = 40;
  allocations = 0;
  std::vector<std::int64_t> produced(kRequests, 0);
  const auto watch = [&](std::size_t request) {
    return [&, request](const Event& event) {
      on_host = true;  // the engine's thread
      if (event.finish) counting = false;
      ++produced[request];
      const auto slowest = *std::min_element(produced.begin(), produced.end());
      if (slowest == 20 && produced[request] == 20) counting = true;
    };
  };
  for (std::size_t i = 0; i < kRequests; ++i) {
    Request request = sampled(random_prompt(model, 4 + i % 30, i), kTokens, i);
    request.sampling.temperature = i % 3 == 0 ? 0 : 1;
    if (i % 4 == 1) request.sampling.logprobs = 5;
    if (i % 4 == 2) request.sampling.top_p = 0.9;
    if (i % 4 == 3) request.sampling.repetition_penalty = 1.1;
    ask(engine, std::move(request), watch(i));
  }
  engine.drain();
  counting = false;
  EXPECT_GE(*std::min_element(produced.begin(), produced.end()), kTokens);
  return allocations.load();
}

// Each thread's scratch memory grows with the work that happens to fall to it; once it has had all kinds, a
// round of the same work allocates nothing.
void expect_no_allocation(const std::string& name, bool replay) {
  SCOPED_TRACE(name);
  const LoadedModel& model = model_of(name);
  EngineOptions options = testing::device_options();
  options.sequences = 64;
  options.threads = 2;
  if (replay) options.mode = cache::ReuseMode::replay;
  on_host = true;
  Engine engine(model, options);
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (int round = 0; round < 8 && least > 0; ++round)
    least = std::min(least, allocations_of_a_round(engine, model));
  EXPECT_EQ(least, 0U);
}

TEST(Device, AllocatesNothingWhile64AnswersGrow) {
  expect_no_allocation("mini", false);
  expect_no_allocation("tiny", false);
}

TEST(Device, AllocatesNothingInReplayMode) {
  expect_no_allocation("tiny", true);
}

}  // namespace
}  // namespace thalweg::engine

#endif
