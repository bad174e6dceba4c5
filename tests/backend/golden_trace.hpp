// Comparison of recorded intermediates with a golden trace, tensor by tensor.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "backend/golden.hpp"
#include "backend/recorder.hpp"

namespace thalweg::backend::testing {

/// Which rows of a computation a stored tensor holds.
class TraceRows {
 public:
  TraceRows(const GoldenFile& file, std::size_t tokens) : tokens_(tokens) {
    if (file.has("trace_positions")) positions_ = file.integers("trace_positions");
  }
  /// Index among `computed` rows of the i-th of `stored` rows: all of them, the listed positions, or the
  /// last.
  std::size_t at(std::size_t i, std::size_t stored, std::size_t computed) const {
    if (stored == computed) return i;
    if (computed == tokens_ && stored == positions_.size()) return positions_[i];
    return computed - stored + i;
  }

 private:
  std::size_t tokens_;
  std::vector<std::int64_t> positions_;
};

inline bool ends_with(const std::string& name, const char* suffix) {
  return name.ends_with(suffix);
}

/// Part of the row's largest score by which one query value, rounded the other way, may move a score.
constexpr float kFlip = 0.05F;

/// Floats within `tolerance`; of the rows of scores, `flips` may hold a query value that lay between two FP4
/// codes by less than the error of float32 and was rounded the other way. `index_scores`: stored rows are
/// padded with -inf to a common length; entries that the engine did not score (outside the candidates) have
/// no stored counterpart to agree with.
inline void expect_floats(const GoldenFile& file, const std::string& name, const Recorder& recorder,
                          const TraceRows& rows, double tolerance, std::size_t flips) {
  ASSERT_TRUE(recorder.has_floats(name)) << name << " was not computed";
  const auto& computed = recorder.floats(name);
  const auto expected = file.floats(name);
  const std::size_t stored = file.rows(name);
  const std::size_t width = expected.size() / stored;
  ASSERT_GE(computed.size(), stored) << name;
  const bool scores = ends_with(name, "index_scores");
  std::set<std::size_t> flipped;
  for (std::size_t i = 0; i < stored; ++i) {
    const std::size_t row = rows.at(i, stored, computed.size());
    const std::vector<float>& actual = computed[row];
    if (!scores) {
      ASSERT_EQ(actual.size(), width) << name;
    }
    for (std::size_t d = 0; d < width; ++d) {
      const float want = expected[i * width + d];
      if (scores && d >= actual.size()) {
        ASSERT_TRUE(std::isinf(want)) << name << " [" << row << ", " << d << "] is visible";
      } else if (scores && std::isinf(actual[d])) {
        continue;
      } else if (scores && std::abs(actual[d] - want) > tolerance &&
                 (flipped.insert(row), flipped.size() <= flips)) {
        ASSERT_NEAR(actual[d], want, kFlip * *std::max_element(actual.begin(), actual.end()))
            << name << " [" << row << ", " << d << "]";
      } else {
        ASSERT_NEAR(actual[d], want, tolerance) << name << " [" << row << ", " << d << "]";
      }
    }
  }
}

/// Integers, equal row by row; `topk` as sets without the -1 that stand for no entry, `candidates` as far as
/// entries are visible.
inline void expect_integers(const GoldenFile& file, const std::string& name, const Recorder& recorder,
                            const TraceRows& rows) {
  ASSERT_TRUE(recorder.has_integers(name)) << name << " was not computed";
  const auto& computed = recorder.integers(name);
  const auto expected = file.integers(name);
  const std::size_t stored = file.rows(name);
  const std::size_t width = expected.size() / stored;
  ASSERT_GE(computed.size(), stored) << name;
  for (std::size_t i = 0; i < stored; ++i) {
    const std::size_t row = rows.at(i, stored, computed.size());
    std::vector<std::int64_t> actual = computed[row];
    const auto first = expected.begin() + static_cast<std::ptrdiff_t>(i * width);
    std::vector<std::int64_t> want(first, first + static_cast<std::ptrdiff_t>(width));
    if (ends_with(name, "topk")) {
      for (auto* set : {&actual, &want}) {
        std::erase(*set, -1);
        std::sort(set->begin(), set->end());
      }
    } else if (ends_with(name, "candidates")) {
      actual.resize(width, 0);
    }
    ASSERT_EQ(actual, want) << name << ", row " << row;
  }
}

/// Every tensor of the file whose name `wanted` accepts; `flips` as for `expect_floats`.
template <class Wanted>
void expect_tensors(const GoldenFile& file, const Recorder& recorder, std::size_t tokens, double tolerance,
                    const Wanted& wanted, std::size_t flips = 0) {
  const TraceRows rows(file, tokens);
  std::size_t compared = 0;
  for (const checkpoint::StoredTensor& tensor : file.tensors()) {
    if (!wanted(tensor.name)) continue;
    ++compared;
    if (tensor.dtype == checkpoint::DType::f32) {
      expect_floats(file, tensor.name, recorder, rows, tolerance, flips);
    } else {
      expect_integers(file, tensor.name, recorder, rows);
    }
  }
  EXPECT_GT(compared, 0U);
}

}  // namespace thalweg::backend::testing
