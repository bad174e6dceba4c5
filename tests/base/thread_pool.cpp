#include "base/thread_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace thalweg {
namespace {

class PoolOf : public testing::TestWithParam<std::size_t> {};

TEST_P(PoolOf, RunsEveryIndexOnce) {
  ThreadPool pool(GetParam());
  for (const std::size_t count : {0U, 1U, 2U, 7U, 64U, 1000U}) {
    for (const std::size_t grain : {0U, 1U, 3U, 64U, 5000U}) {
      std::vector<int> visits(count, 0);  // each element is written by one thread: no atomics on purpose
      pool.parallel_for(count, grain, [&](std::size_t begin, std::size_t end, std::size_t) {
        for (std::size_t i = begin; i < end; ++i) ++visits[i];
      });
      EXPECT_TRUE(std::all_of(visits.begin(), visits.end(), [](int n) { return n == 1; }))
          << count << " " << grain;
    }
  }
}

TEST_P(PoolOf, RangesAreMultiplesOfTheGrain) {
  ThreadPool pool(GetParam());
  std::atomic<bool> right{true};
  pool.parallel_for(100, 8, [&](std::size_t begin, std::size_t end, std::size_t) {
    if (begin % 8 != 0 || (end % 8 != 0 && end != 100) || end <= begin || end > 100) right = false;
  });
  EXPECT_TRUE(right);
}

TEST_P(PoolOf, WorkerNumbersSeparateScratchSpace) {
  ThreadPool pool(GetParam());
  std::vector<std::size_t> sums(pool.size(), 0);  // unprotected: two threads with one number would be a race
  pool.parallel_for(10'000, 1, [&](std::size_t begin, std::size_t end, std::size_t worker) {
    ASSERT_LT(worker, sums.size());
    for (std::size_t i = begin; i < end; ++i) sums[worker] += i;
  });
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), std::size_t{0}), 10'000U * 9'999U / 2);
}

TEST_P(PoolOf, SeesWhatEarlierLoopsWrote) {
  ThreadPool pool(GetParam());
  std::vector<std::size_t> values(257, 0);
  for (std::size_t round = 0; round < 300; ++round) {
    std::vector<std::size_t> next(values.size());
    pool.parallel_for(values.size(), 2, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) next[i] = values[(i + 1) % values.size()] + 1;
    });
    values = std::move(next);
  }
  EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](std::size_t v) { return v == 300; }));
}

TEST_P(PoolOf, PassesOnTheExceptionOfABodyAndWorksOn) {
  ThreadPool pool(GetParam());
  for (int repetition = 0; repetition < 20; ++repetition) {
    try {
      pool.parallel_for(100, 1, [](std::size_t begin, std::size_t, std::size_t) {
        if (begin == 40) throw std::runtime_error("body 40");
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()), "body 40");
    }
    std::atomic<std::size_t> visited{0};
    pool.parallel_for(100, 1,
                      [&](std::size_t begin, std::size_t end, std::size_t) { visited += end - begin; });
    EXPECT_EQ(visited, 100U);
  }
}

TEST_P(PoolOf, RethrowsOneOfManyExceptions) {
  ThreadPool pool(GetParam());
  EXPECT_THROW(
      pool.parallel_for(64, 1, [](std::size_t, std::size_t, std::size_t) { throw std::length_error("x"); }),
      std::length_error);
}

INSTANTIATE_TEST_SUITE_P(Threads, PoolOf, testing::Values(1, 2, 3, 8),
                         [](const auto& threads) { return std::to_string(threads.param); });

TEST(ThreadPool, CountsTheCallingThread) {
  EXPECT_EQ(ThreadPool(1).size(), 1U);
  EXPECT_EQ(ThreadPool(5).size(), 5U);
  EXPECT_EQ(ThreadPool().size(), available_processors());
  EXPECT_GE(available_processors(), 1U);
}

TEST(ThreadPool, StartsAndStopsWithoutWork) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(4);
}

TEST(ThreadPool, StopsWhileWorkersAreStillSpinning) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool(3);
    pool.parallel_for(6, 1, [](std::size_t, std::size_t, std::size_t) {});
  }
}

}  // namespace
}  // namespace thalweg
