#include "backend/cuda/experts.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "reference.hpp"

namespace thalweg::cuda::test {
namespace {

constexpr float limit = 4.0f;

// A layer of experts, small enough for plain arithmetic.
struct Layer {
  int width;
  int hidden;
  std::vector<Matrix> gate, up, down;
  PackedShape first_shape, second_shape;
  DeviceArray<std::uint8_t> first, second;

  Layer(int experts, int width_, int hidden_, std::mt19937& random)
      : width(width_),
        hidden(hidden_),
        first_shape{WeightFormat::fp4, 2 * hidden_, width_},
        second_shape{WeightFormat::fp4, width_, hidden_},
        first(first_shape.bytes() * experts),
        second(second_shape.bytes() * experts) {
    for (int expert = 0; expert < experts; ++expert) {
      gate.emplace_back(WeightFormat::fp4, hidden, width, random);
      up.emplace_back(WeightFormat::fp4, hidden, width, random);
      down.emplace_back(WeightFormat::fp4, width, hidden, random);
      pack_pair(gate.back(), up.back(), first.data() + expert * first_shape.bytes());
      const auto one = packed(down.back());
      check(cudaMemcpy(second.data() + expert * second_shape.bytes(), one.data(), one.size(),
                       cudaMemcpyDeviceToDevice),
            "copy");
    }
  }
};

struct Routing {
  std::vector<int> ids;
  std::vector<float> weights;
  int slots;

  Routing(int tokens, int slots_, int experts, std::mt19937& random) : slots(slots_) {
    std::vector<int> order(experts);
    std::iota(order.begin(), order.end(), 0);
    for (int token = 0; token < tokens; ++token) {
      std::shuffle(order.begin(), order.end(), random);
      for (int slot = 0; slot < slots; ++slot) {
        ids.push_back(order[slot]);
        weights.push_back(std::uniform_real_distribution<float>(0.1f, 0.5f)(random));
      }
    }
  }
};

// Everything from tokens to combined rows; `hidden_rows`, if asked for, receives the quantised middle by
// entry.
std::vector<std::uint16_t> run(const Layer& layer, const Routing& routing,
                               const std::vector<std::vector<float>>& x,
                               std::vector<std::vector<float>>* hidden_rows = nullptr) {
  const int tokens = static_cast<int>(x.size());
  ExpertPlan plan(tokens, routing.slots, static_cast<int>(layer.gate.size()));
  const DeviceArray<int> ids(
      std::vector<int>(routing.ids.begin(), routing.ids.begin() + tokens * routing.slots));
  const DeviceArray<float> weights(routing.weights);
  plan.sort(ids.data(), tokens, nullptr);
  const Operand operand(x);
  const Operand sorted(plan.row_capacity(), layer.width);
  const Operand hidden(plan.row_capacity(), layer.hidden);
  gather_expert_rows(plan, operand.view, sorted.view, nullptr);
  check(cudaMemset(hidden.memory.data(), 0, hidden.memory.size() * 2), "fill");
  expert_gate_up(plan, layer.first_shape, layer.first.data(), sorted.view, weights.data(), limit, hidden.view,
                 nullptr);
  DeviceArray<std::uint16_t> rows(static_cast<std::size_t>(plan.row_capacity()) * layer.width);
  expert_down(plan, layer.second_shape, layer.second.data(), hidden.view, rows.data(), nullptr);
  DeviceArray<std::uint16_t> out(static_cast<std::size_t>(tokens) * layer.width);
  combine_experts(plan, rows.data(), nullptr, layer.width, out.data(), nullptr);
  if (hidden_rows != nullptr) {
    const auto all = hidden.download();
    std::vector<int> row_of(plan.tokens() * routing.slots);
    check(cudaMemcpy(row_of.data(), plan.row_of(), row_of.size() * sizeof(int), cudaMemcpyDeviceToHost),
          "copy");
    for (const int row : row_of) hidden_rows->push_back(row < 0 ? std::vector<float>() : all[row]);
  }
  return out.download();
}

class CudaExperts : public CudaTest {
 protected:
  std::mt19937 random{11};
};

TEST_F(CudaExperts, SortGivesEveryEntryARowOfItsExpert) {
  for (const int tokens : {1, 7, 64, 500}) {
    Routing routing(tokens, 6, 48, random);
    routing.ids[2] = -1;
    ExpertPlan plan(500, 6, 48);
    const DeviceArray<int> ids(routing.ids);
    plan.sort(ids.data(), tokens, nullptr);
    std::vector<int> row_of(tokens * 6), entry_of(plan.row_capacity());
    check(cudaMemcpy(row_of.data(), plan.row_of(), row_of.size() * 4, cudaMemcpyDeviceToHost), "copy");
    check(cudaMemcpy(entry_of.data(), plan.entry_of(), entry_of.size() * 4, cudaMemcpyDeviceToHost), "copy");
    int count = 0;
    check(cudaMemcpy(&count, plan.tile_count(), 4, cudaMemcpyDeviceToHost), "copy");
    ASSERT_LE(count, plan.max_tiles());
    std::vector<ExpertTile> tiles(count);
    check(cudaMemcpy(tiles.data(), plan.tiles(), count * sizeof(ExpertTile), cudaMemcpyDeviceToHost), "copy");
    std::set<int> covered;
    for (const ExpertTile& tile : tiles) {
      EXPECT_EQ(tile.row % 8, 0);
      EXPECT_LE(tile.rows, plan.tile_rows());
      for (int row = tile.row; row < tile.row + tile.rows; ++row) {
        ASSERT_GE(entry_of[row], 0);
        EXPECT_EQ(routing.ids[entry_of[row]], tile.expert);
        EXPECT_TRUE(covered.insert(entry_of[row]).second);
      }
    }
    EXPECT_EQ(covered.size(), routing.ids.size() - 1);
    EXPECT_EQ(row_of[2], -1);
    for (const int entry : covered) EXPECT_EQ(entry_of[row_of[entry]], entry);
  }
}

TEST_F(CudaExperts, ProductsFollowTheModel) {
  const Layer layer(6, 256, 160, random);
  for (const int tokens : {1, 5, 40, 150}) {
    SCOPED_TRACE(tokens);
    const Routing routing(tokens, 3, 6, random);
    const auto x = random_rows(tokens, layer.width, random);
    std::vector<std::vector<float>> hidden;
    const auto out = run(layer, routing, x, &hidden);
    int wrong_hidden = 0;
    int wrong = 0;
    for (int token = 0; token < tokens; ++token) {
      std::vector<double> sum(layer.width, 0.0);
      std::vector<double> size(layer.width, 0.0);
      for (int slot = 0; slot < 3; ++slot) {
        const int entry = token * 3 + slot;
        const int expert = routing.ids[entry];
        std::vector<float> values(layer.hidden);
        for (int channel = 0; channel < layer.hidden; ++channel) {
          const float* gate = &layer.gate[expert].values[channel * layer.width];
          const float* up = &layer.up[expert].values[channel * layer.width];
          const float a =
              std::min(rounded(static_cast<float>(dot(gate, x[token].data(), layer.width))), limit);
          const float u =
              std::clamp(rounded(static_cast<float>(dot(up, x[token].data(), layer.width))), -limit, limit);
          values[channel] = rounded(a / (1 + std::exp(-a)) * u * routing.weights[entry]);
        }
        values = quantised_fp8(values);
        for (int channel = 0; channel < layer.hidden; ++channel) {
          wrong_hidden += !(std::fabs(hidden[entry][channel] - values[channel]) <=
                            0.14f * std::fabs(values[channel]) + 0.01f);
        }
        // The second product from what the first really gave.
        for (int n = 0; n < layer.width; ++n) {
          const float* weight = &layer.down[expert].values[n * layer.hidden];
          const double product = dot(weight, hidden[entry].data(), layer.hidden);
          sum[n] += product;
          size[n] += std::fabs(product);
        }
      }
      for (int n = 0; n < layer.width; ++n) {
        wrong += !(std::fabs(from_bf16(out[token * layer.width + n]) - sum[n]) <= size[n] / 100 + 1e-5);
      }
    }
    EXPECT_EQ(wrong_hidden, 0);
    EXPECT_EQ(wrong, 0);
  }
}

TEST_F(CudaExperts, ARowDoesNotDependOnItsBatch) {
  const Layer layer(8, 512, 256, random);
  const Routing routing(600, 4, 8, random);
  const auto x = random_rows(600, layer.width, random);
  const auto all = run(layer, routing, x);
  for (const int tokens : {1, 9, 30, 100}) {
    const auto some = run(layer, routing, {x.begin(), x.begin() + tokens});
    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << tokens;
  }
}

TEST_F(CudaExperts, EveryFp4CodeAndScaleWidensExactly) {
  Matrix matrix(WeightFormat::fp4, 64, 128, random);
  for (const int scale : {20, 100, 127, 128}) {
    for (auto& code : matrix.scales) code = static_cast<std::uint8_t>(scale);
    for (int i = 0; i < 64 * 128; ++i)
      matrix.values[i] = from_e8m0(scale) * from_e2m1(matrix.codes[i / 2] >> (i % 2 * 4) & 15);
    const auto memory = packed(matrix);
    for (int column = 0; column < 128; column += 3) {
      ExpertPlan plan(1, 1, 1);
      const DeviceArray<int> ids(std::vector<int>{0});
      plan.sort(ids.data(), 1, nullptr);
      std::vector<std::vector<float>> x(1, std::vector<float>(128, 0.0f));
      x[0][column] = 1;
      const Operand operand(x);
      const Operand sorted(plan.row_capacity(), 128);
      gather_expert_rows(plan, operand.view, sorted.view, nullptr);
      DeviceArray<std::uint16_t> out(static_cast<std::size_t>(plan.row_capacity()) * 64);
      expert_down(plan, {WeightFormat::fp4, 64, 128}, memory.data(), sorted.view, out.data(), nullptr);
      const auto got = out.download();
      for (int n = 0; n < 64; ++n) EXPECT_EQ(from_bf16(got[n]), matrix.values[n * 128 + column]);
    }
  }
}

}  // namespace
}  // namespace thalweg::cuda::test
