#include "backend/cuda/mix.hpp"

#include <gtest/gtest.h>

#include <array>

#include "reference.hpp"

namespace thalweg::cuda::test {
namespace {

constexpr int iterations = 20;
constexpr float mix_epsilon = 1e-6f;

struct Coefficients {
  std::vector<float> pre, post, comb;
};

class CudaMix : public CudaTest {
 protected:
  std::mt19937 random{31};

  std::vector<std::uint16_t> random_bf16(std::size_t count, float spread = 1) {
    std::normal_distribution<float> normal(0, spread);
    std::vector<std::uint16_t> values(count);
    for (auto& value : values) value = to_bf16(normal(random));
    return values;
  }
  std::vector<float> random_float(std::size_t count, float low, float high) {
    std::uniform_real_distribution<float> uniform(low, high);
    std::vector<float> values(count);
    for (auto& value : values) value = uniform(random);
    return values;
  }
};

// Coefficients of one row from its logits, in double.
struct RowCoefficients {
  std::array<double, 4> pre;
  std::array<double, 4> post;
  std::array<std::array<double, 4>, 4> comb;

  explicit RowCoefficients(const std::array<double, 24>& logits) {
    for (int i = 0; i < 4; ++i) {
      pre[i] = 1 / (1 + std::exp(-logits[i])) + mix_epsilon;
      post[i] = 2 / (1 + std::exp(-logits[4 + i]));
      double sum = 0;
      for (int j = 0; j < 4; ++j) sum += comb[i][j] = std::exp(logits[8 + 4 * i + j]);
      for (int j = 0; j < 4; ++j) comb[i][j] = comb[i][j] / sum + mix_epsilon;
    }
    divide_columns();
    for (int i = 1; i < iterations; ++i) {
      for (auto& row : comb) {
        const double sum = row[0] + row[1] + row[2] + row[3];
        for (double& value : row) value /= sum + mix_epsilon;
      }
      divide_columns();
    }
  }
  void divide_columns() {
    for (int j = 0; j < 4; ++j) {
      const double sum = comb[0][j] + comb[1][j] + comb[2][j] + comb[3][j];
      for (int i = 0; i < 4; ++i) comb[i][j] /= sum + mix_epsilon;
    }
  }
};

struct Case {
  int rows;
  int width;
  std::vector<std::uint16_t> h, output, norm_weight;
  Coefficients last;
  std::vector<float> fn, base, scale;
};

struct Result {
  std::vector<std::uint16_t> h;
  std::vector<std::vector<float>> quantised, plain;
  Coefficients next;
};

Result run(const Case& test, int rows, bool expands) {
  DeviceArray<std::uint16_t> h(
      std::vector<std::uint16_t>(test.h.begin(), test.h.begin() + rows * 4 * test.width));
  const DeviceArray<std::uint16_t> output(test.output);
  const DeviceArray<std::uint16_t> norm_weight(test.norm_weight);
  const DeviceArray<float> pre(test.last.pre), post(test.last.post), comb(test.last.comb), fn(test.fn),
      base(test.base), scale(test.scale);
  DeviceArray<float> next_pre(std::size_t(rows) * 4), next_post(std::size_t(rows) * 4),
      next_comb(std::size_t(rows) * 16);
  const MixWorkspace workspace(rows, test.width);
  const Operand quantised(rows, test.width);
  const Operand plain(rows, test.width);
  MixInput input;
  input.h = h.data();
  input.rows = rows;
  input.width = test.width;
  input.output = expands ? output.data() : nullptr;
  input.last = {pre.data(), post.data(), comb.data()};
  input.weights = {fn.data(), base.data(), scale.data()};
  input.norm_weight = norm_weight.data();
  input.epsilon = 1e-20f;
  input.mix_epsilon = mix_epsilon;
  input.iterations = iterations;
  mix_sublayer(input, workspace, {next_pre.data(), next_post.data(), next_comb.data()}, quantised.view,
               plain.memory.data(), nullptr);
  return {h.download(),
          quantised.download(),
          plain.download(),
          {next_pre.download(), next_post.download(), next_comb.download()}};
}

TEST_F(CudaMix, ASublayerFollowsTheModel) {
  for (const bool expands : {true, false}) {
    const int rows = 21;
    const int width = 320;
    const Case test{
        rows,
        width,
        random_bf16(rows * 4 * width),
        random_bf16(rows * width),
        random_bf16(width),
        {random_float(rows * 4, 0, 1), random_float(rows * 4, 0, 2), random_float(rows * 16, 0, 1)},
        random_float(24 * 4 * width, -0.05f, 0.05f),
        random_float(24, -1, 1),
        random_float(3, 0.5f, 2)};
    const Result got = run(test, rows, expands);
    for (int row = 0; row < rows; ++row) {
      std::vector<float> h(4 * width);
      double squares = 0;
      for (int j = 0; j < 4; ++j) {
        for (int d = 0; d < width; ++d) {
          const auto old = [&](int i) { return from_bf16(test.h[(row * 4 + i) * width + d]); };
          double value = old(j);
          if (expands) {
            value =
                test.last.post[row * 4 + j] * static_cast<double>(from_bf16(test.output[row * width + d]));
            for (int i = 0; i < 4; ++i)
              value += static_cast<double>(test.last.comb[row * 16 + i * 4 + j]) * old(i);
          }
          const float kept = from_bf16(got.h[(row * 4 + j) * width + d]);
          ASSERT_TRUE(close_bf16(kept, value, 8, 0.51));
          h[j * width + d] = kept;
          squares += static_cast<double>(kept) * kept;
        }
      }
      std::array<double, 24> logits;
      for (int j = 0; j < 24; ++j) {
        const double product = dot(&test.fn[j * 4 * width], h.data(), 4 * width);
        logits[j] =
            product / std::sqrt(squares / (4 * width)) * test.scale[std::min(j / 4, 2)] + test.base[j];
      }
      const RowCoefficients expected(logits);
      for (int i = 0; i < 4; ++i) {
        EXPECT_NEAR(got.next.pre[row * 4 + i], expected.pre[i], 2e-6);
        EXPECT_NEAR(got.next.post[row * 4 + i], expected.post[i], 4e-6);
        for (int j = 0; j < 4; ++j)
          EXPECT_NEAR(got.next.comb[row * 16 + i * 4 + j], expected.comb[i][j], 3e-6);
      }
      std::vector<float> collapsed(width);
      double collapsed_squares = 0;
      for (int d = 0; d < width; ++d) {
        float sum = 0;
        for (int i = 0; i < 4; ++i) sum += test.last.pre[row * 4 + i] * h[i * width + d];
        collapsed[d] = rounded(sum);
        collapsed_squares += static_cast<double>(collapsed[d]) * collapsed[d];
      }
      for (int d = 0; d < width; ++d) {
        const double x = collapsed[d] / std::sqrt(collapsed_squares / width) * from_bf16(test.norm_weight[d]);
        ASSERT_TRUE(close_bf16(got.plain[row][d], x, 1, 0.51)) << got.plain[row][d] << " " << x;
      }
      EXPECT_EQ(got.quantised[row], quantised_fp8(got.plain[row]));
    }
  }
}

TEST_F(CudaMix, ARowDoesNotDependOnItsBatch) {
  const int rows = 70;
  const int width = 5120;
  const Case test{rows,
                  width,
                  random_bf16(rows * 4 * width),
                  random_bf16(rows * width),
                  random_bf16(width),
                  {random_float(rows * 4, 0, 1), random_float(rows * 4, 0, 2), random_float(rows * 16, 0, 1)},
                  random_float(24 * 4 * width, -0.01f, 0.01f),
                  random_float(24, -1, 1),
                  random_float(3, 0.5f, 2)};
  const Result all = run(test, rows, true);
  for (const int some : {1, 17, 33}) {
    const Result part = run(test, some, true);
    EXPECT_TRUE(std::equal(part.h.begin(), part.h.end(), all.h.begin()));
    EXPECT_TRUE(std::equal(part.quantised.begin(), part.quantised.end(), all.quantised.begin()));
    EXPECT_TRUE(std::equal(part.next.comb.begin(), part.next.comb.end(), all.next.comb.begin()));
    EXPECT_TRUE(std::equal(part.next.pre.begin(), part.next.pre.end(), all.next.pre.begin()));
  }
}

}  // namespace
}  // namespace thalweg::cuda::test
