#include "backend/cuda/router.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "reference.hpp"

namespace thalweg::cuda::test {
namespace {

class CudaRouter : public CudaTest {};

TEST_F(CudaRouter, ChoosesByBiasedScoreAndWeighsByScore) {
  std::mt19937 random(9);
  for (const auto& [experts, chosen] : {std::pair{384, 6}, {128, 3}, {12, 5}, {512, 8}}) {
    const int rows = 50;
    std::vector<float> logits(rows * experts), bias(experts), image_bias(experts);
    std::vector<std::uint8_t> image(rows);
    std::normal_distribution<float> normal;
    // Coarse values give ties; some logits pass the switch of softplus at 20.
    for (float& value : logits) value = std::round(normal(random) * 8) / (random() % 50 == 0 ? 0.5f : 4.0f);
    for (float& value : bias) value = std::round(normal(random) * 4) / 16;
    for (float& value : image_bias) value = std::round(normal(random) * 4) / 16;
    for (auto& value : image) value = random() % 2;
    const DeviceArray<float> logit_memory(logits), bias_memory(bias), image_bias_memory(image_bias);
    const DeviceArray<std::uint8_t> image_memory(image);
    DeviceArray<int> ids(static_cast<std::size_t>(rows) * chosen);
    DeviceArray<float> weights(static_cast<std::size_t>(rows) * chosen);
    route({logit_memory.data(), rows, experts, bias_memory.data(), image_bias_memory.data(),
           image_memory.data(), chosen, 1.5f},
          ids.data(), weights.data(), nullptr);
    const auto got_ids = ids.download();
    const auto got_weights = weights.download();
    for (int row = 0; row < rows; ++row) {
      std::vector<double> scores(experts);
      for (int i = 0; i < experts; ++i) {
        const double z = logits[row * experts + i];
        scores[i] = std::sqrt(z > 20 ? z : std::log1p(std::exp(z)));
      }
      const auto& added = image[row] != 0 ? image_bias : bias;
      double sum = 0;
      for (int i = 0; i < chosen; ++i) sum += scores[got_ids[row * chosen + i]];
      std::vector<bool> taken(experts);
      for (int i = 0; i < chosen; ++i) {
        const int id = got_ids[row * chosen + i];
        ASSERT_FALSE(taken[id]);
        for (int other = 0; other < experts; ++other) {
          const double lead = scores[id] + added[id] - scores[other] - added[other];
          const bool equal =
              logits[row * experts + other] == logits[row * experts + id] && added[other] == added[id];
          ASSERT_TRUE(taken[other] || lead > -1e-6) << "row " << row << ": " << other << " before " << id;
          if (equal && !taken[other]) {
            ASSERT_LE(id, other);
          }
        }
        taken[id] = true;
        EXPECT_NEAR(got_weights[row * chosen + i], scores[id] / (sum + 1e-20) * 1.5, 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace thalweg::cuda::test
