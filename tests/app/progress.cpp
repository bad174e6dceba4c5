#include "app/progress.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace thalweg::app {
namespace {

/// A Progress that writes to memory under a clock that the test moves.
class ProgressTest : public testing::Test {
 protected:
  ~ProgressTest() override {
    std::fclose(file_);
    std::free(buffer_);
  }

  ProgressOutput output(bool terminal) {
    return {.file = file_, .terminal = terminal, .now = [this] { return time_; }};
  }

  std::string written() {
    std::fflush(file_);
    return {buffer_, size_};
  }

  double time_ = 100;

 private:
  char* buffer_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_ = ::open_memstream(&buffer_, &size_);
};

TEST_F(ProgressTest, WritesALineEveryTenSecondsWhereNobodyWatches) {
  Progress progress("generating", "requests", 8, output(false));
  for (int second = 0; second < 20; second += 5) {
    time_ += 5;
    progress.advance();
  }
  progress.finish();
  EXPECT_EQ(written(),
            "generating: 2 of 8 requests, 0.20 requests/s, 30 s left\n"
            "generating: 4 of 8 requests, 0.20 requests/s, 20 s left\n"
            "generating: 4 of 8 requests in 20 s, 0.20 requests/s\n");
}

TEST_F(ProgressTest, RewritesOneLineOnATerminalAndRemovesIt) {
  Progress progress("loading", "bytes", 2'000'000'000, output(true));
  time_ += 0.01;
  progress.advance(1'000'000);  // too soon after the start to be shown
  time_ += 0.99;
  progress.advance(499'000'000);
  time_ += 1;
  progress.advance(500'000'000);
  progress.finish();
  EXPECT_EQ(written(),
            "loading: 500.0 of 2000.0 MB, 500.0 MB/s, 3 s left\r\x1b[K"
            "loading: 1000.0 of 2000.0 MB, 500.0 MB/s, 2 s left\r\x1b[K"
            "loading: 1000.0 of 2000.0 MB in 2 s, 500.0 MB/s\n");
}

TEST_F(ProgressTest, QuickWorkIsSilent) {
  Progress progress("loading", "bytes", 10, output(false));
  progress.advance(10);
  progress.finish();
  EXPECT_EQ(written(), "");
}

TEST_F(ProgressTest, AbandonedWorkLeavesNoSummaryAndACleanTerminal) {
  {
    Progress progress("generating", "tokens", {}, output(true));
    time_ += 5;
    progress.advance(100);
  }
  EXPECT_EQ(written(), "generating: 100 tokens, 20 tokens/s\r\x1b[K");
}

TEST(DurationText, UsesTheTwoLargestUnits) {
  EXPECT_EQ(duration_text(0), "0 s");
  EXPECT_EQ(duration_text(59.4), "59 s");
  EXPECT_EQ(duration_text(59.6), "1 min 0 s");
  EXPECT_EQ(duration_text(3599), "59 min 59 s");
  EXPECT_EQ(duration_text(7500), "2 h 5 min");
  EXPECT_EQ(duration_text(-1), "0 s");
}

}  // namespace
}  // namespace thalweg::app
