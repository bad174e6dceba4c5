// Acceptance of drafts by shared noise and by rejection, from distributions.
#include "bench/acceptance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>

#include "engine/loaded_model.hpp"

namespace thalweg::bench {
namespace {

std::vector<double> random_distribution(std::mt19937_64& random, std::size_t n) {
  std::exponential_distribution<double> draw;
  std::vector<double> p(n);
  double sum = 0;
  for (double& x : p) sum += x = std::pow(draw(random), 3);
  for (double& x : p) x /= sum;
  return p;
}

TEST(Acceptance, OfSharedNoiseIsHowOftenBothModelsDrawTheSameToken) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> draw;
  for (int round = 0; round < 4; ++round) {
    const std::vector<double> p = random_distribution(random, 6);
    const std::vector<double> q = random_distribution(random, 6);
    constexpr int kDraws = 200'000;
    int same = 0;
    for (int i = 0; i < kDraws; ++i) {
      // The largest of log p + Gumbel noise is the smallest of exponential noise / p.
      std::size_t a = 0;
      std::size_t b = 0;
      double x[6];
      for (std::size_t j = 0; j < 6; ++j) {
        x[j] = draw(random);
        if (x[j] / p[j] < x[a] / p[a]) a = j;
        if (x[j] / q[j] < x[b] / q[b]) b = j;
      }
      same += a == b ? 1 : 0;
    }
    EXPECT_NEAR(coupled_acceptance(p, q), same / double{kDraws}, 0.005);
  }
}

TEST(Acceptance, OfSharedNoiseIsNeverAboveRejectionAndBothAreCertainForEqualModels) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 100; ++round) {
    const std::vector<double> p = random_distribution(random, 50);
    const std::vector<double> q = random_distribution(random, 50);
    EXPECT_LE(coupled_acceptance(p, q), rejection_acceptance(p, q) + 1e-9);
    EXPECT_NEAR(coupled_acceptance(p, p), 1, 1e-4);
    EXPECT_NEAR(rejection_acceptance(p, p), 1, 1e-12);
  }
}

TEST(Acceptance, WithoutTemperatureBothWaysAcceptTheSameDrafts) {
  const auto model = engine::load_model(std::filesystem::path(THALWEG_SOURCE_DIR) / "models/mini");
  backend::BackendOptions options;
  options.pages = 4;
  const auto backend = backend::make_backend(model->model, options);
  const std::vector<std::vector<std::int32_t>> prompts = {{0, 300, 301, 302}, {0, 400}};
  const AcceptanceFigures figures = measure_acceptance(*backend, prompts, 20, 0);
  EXPECT_EQ(figures.blocks, 40);
  EXPECT_EQ(figures.coupled, figures.rejection);
  EXPECT_GT(figures.coupled[0], 0);
  EXPECT_TRUE(std::ranges::is_sorted(figures.coupled, std::greater<>()));
}

}  // namespace
}  // namespace thalweg::bench
