#include "base/thread_pool.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace thalweg {

struct ThreadPool::State {
  std::vector<std::jthread> workers;
  std::atomic<std::size_t> round{0};  // a new value means a new loop
  // Who may touch the loop below: bit 0 is set while it is open to workers, the rest counts those inside. A
  // worker that comes late, since its processor does other work, finds it closed: nobody waits for it.
  std::atomic<std::size_t> gate{0};
  std::atomic<bool> stop{false};

  const void* context = nullptr;
  Call call = nullptr;
  std::size_t count = 0;
  std::size_t grain = 1;
  std::atomic<std::size_t> next{0};
  std::mutex error_mutex;
  std::exception_ptr error;

  void work(std::size_t worker) {
    try {
      for (;;) {
        const std::size_t begin = next.fetch_add(grain, std::memory_order_relaxed);
        if (begin >= count) return;
        call(context, begin, std::min(begin + grain, count), worker);
      }
    } catch (...) {
      next.store(count, std::memory_order_relaxed);
      const std::lock_guard lock(error_mutex);
      if (!error) error = std::current_exception();
    }
  }

  // Spins briefly, since loops follow each other within microseconds inside a step, then sleeps. No mutex: a
  // worker that loses its processor between two loops must not hold up the thread that starts the next.
  std::size_t wait_for_round(std::size_t seen) {
    for (int spin = 0; spin < 2000; ++spin) {
      if (round.load(std::memory_order_acquire) != seen || stop.load(std::memory_order_relaxed))
        return round.load();
      if (spin % 64 == 63) std::this_thread::yield();
    }
    round.wait(seen);
    return round.load();
  }

  bool enter() {
    std::size_t now = gate.load(std::memory_order_relaxed);
    while ((now & 1) != 0) {
      if (gate.compare_exchange_weak(now, now + 2, std::memory_order_acquire, std::memory_order_relaxed))
        return true;
    }
    return false;
  }

  void worker_main(std::size_t worker) {
    std::size_t seen = 0;
    for (;;) {
      seen = wait_for_round(seen);
      if (stop.load()) return;
      if (!enter()) continue;
      work(worker);
      gate.fetch_sub(2, std::memory_order_release);
    }
  }

  void close_and_wait() {
    gate.fetch_sub(1, std::memory_order_relaxed);
    for (int spin = 0; gate.load(std::memory_order_acquire) != 0; ++spin) {
      if (spin % 64 == 63) std::this_thread::yield();
    }
  }
};

ThreadPool::ThreadPool(std::size_t threads) : state_(std::make_unique<State>()) {
  if (threads == 0) threads = available_processors();
  for (std::size_t worker = 1; worker < threads; ++worker) {
    state_->workers.emplace_back([state = state_.get(), worker] { state->worker_main(worker); });
  }
}

ThreadPool::~ThreadPool() {
  state_->stop.store(true);
  state_->round.fetch_add(1);
  state_->round.notify_all();
}

std::size_t ThreadPool::size() const {
  return state_->workers.size() + 1;
}

void ThreadPool::run(std::size_t count, std::size_t grain, const void* context, Call call) {
  State& state = *state_;
  grain = std::max<std::size_t>(grain, 1);
  if (state.workers.empty() || count <= grain) {
    for (std::size_t begin = 0; begin < count; begin += grain)
      call(context, begin, std::min(begin + grain, count), 0);
    return;
  }
  state.context = context;
  state.call = call;
  state.count = count;
  state.grain = grain;
  state.next.store(0, std::memory_order_relaxed);
  state.error = nullptr;
  state.gate.store(1, std::memory_order_release);
  state.round.fetch_add(1);
  state.round.notify_all();
  state.work(0);
  state.close_and_wait();
  if (state.error) std::rethrow_exception(state.error);
}

std::size_t available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace thalweg
