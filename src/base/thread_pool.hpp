// A fixed set of worker threads for data-parallel loops.
#pragma once

#include <cstddef>
#include <memory>

namespace thalweg {

/// Splits loops over worker threads. The split never changes a result: each index is computed whole by one
/// thread. One loop at a time: `parallel_for` may be called from one thread only, and not from inside a loop
/// body.
class ThreadPool {
 public:
  /// `threads` counts the calling thread; 0 takes the number of processors this process may use.
  explicit ThreadPool(std::size_t threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t size() const;

  /// Calls body(begin, end, worker) on disjoint ranges that cover [0, count), each a multiple of `grain` long
  /// but the last; worker < size() numbers the calling thread's scratch space. Returns when all are done; the
  /// first exception thrown by a body is rethrown. Nothing is allocated.
  template <class Body>
  void parallel_for(std::size_t count, std::size_t grain, const Body& body) {
    run(count, grain, &body, [](const void* context, std::size_t begin, std::size_t end, std::size_t worker) {
      (*static_cast<const Body*>(context))(begin, end, worker);
    });
  }

 private:
  struct State;
  using Call = void (*)(const void* context, std::size_t begin, std::size_t end, std::size_t worker);
  void run(std::size_t count, std::size_t grain, const void* context, Call call);
  std::unique_ptr<State> state_;
};

/// Processors available to this process (its affinity mask), at least 1.
std::size_t available_processors();

}  // namespace thalweg
