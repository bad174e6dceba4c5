// The routed experts' products under uniform random routing.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>

#include "backend/cuda/experts.hpp"
#include "bench/bench_weights.hpp"
#include "bench/kernel_bench.hpp"
#include "bench/random_fill.hpp"

namespace thalweg::bench {
namespace {

using cuda::DeviceArray;
using cuda::ExpertPlan;
using cuda::OperandView;
using cuda::PackedShape;
using cuda::WeightFormat;

constexpr int width = 5120;
constexpr int hidden = 2304;
constexpr int slots = 6;
constexpr PackedShape first_shape{WeightFormat::fp4, 2 * hidden, width};
constexpr PackedShape second_shape{WeightFormat::fp4, width, hidden};

struct Setting {
  const char* name;
  int tokens;  // that choose among `experts` experts of this device: rows = 6 tokens
  int experts;
};

constexpr Setting settings[] = {
    {"ep8_T64", 64, 48},       {"ep8_T128", 128, 48},         {"ep8_T256", 256, 48},
    {"ep8_T384", 384, 48},     {"ep8_T768", 768, 48},         {"ep64_T64", 64, 6},
    {"ep64_T128", 128, 6},     {"ep64_T384", 384, 6},         {"ep64_T768", 768, 6},
    {"all384_T64", 64, 384},   {"all384_T128", 128, 384},     {"all384_T256", 256, 384},
    {"all384_T384", 384, 384}, {"prefill8192_ep8", 8192, 48},
};

// What both products share: the routing and the activations. Weights come in `copies` sets.
struct Buffers {
  ExpertPlan plan;
  DeviceArray<int> ids;
  DeviceArray<float> routing_weights;
  DeviceArray<std::uint8_t> weights;
  DeviceArray<std::uint16_t> x;
  DeviceArray<std::uint16_t> middle;
  DeviceArray<std::uint16_t> out;

  explicit Buffers(const Setting& setting) : plan(setting.tokens, slots, setting.experts) {}
};

std::vector<int> random_ids(const Setting& setting) {
  std::mt19937 random(17);
  std::vector<int> experts(setting.experts);
  std::iota(experts.begin(), experts.end(), 0);
  std::vector<int> ids;
  for (int token = 0; token < setting.tokens; ++token) {
    std::shuffle(experts.begin(), experts.end(), random);
    ids.insert(ids.end(), experts.begin(), experts.begin() + slots);
  }
  return ids;
}

std::vector<KernelCase::Launcher> prepare(const Setting& setting, bool first) {
  const PackedShape shape = first ? first_shape : second_shape;
  const auto buffers = std::make_shared<Buffers>(setting);
  buffers->ids = DeviceArray<int>(random_ids(setting));
  buffers->routing_weights = DeviceArray<float>(buffers->ids.size());
  fill_float(buffers->routing_weights.data(), buffers->ids.size(), 0.1f, 0.4f, 3);
  buffers->plan.sort(buffers->ids.data(), setting.tokens, nullptr);
  const int rows = buffers->plan.row_capacity();
  const std::size_t set_bytes = shape.bytes() * setting.experts;
  const int copies = std::min(rotating_copies(static_cast<double>(set_bytes)), 4);
  buffers->weights = random_weights(shape, copies * setting.experts);
  buffers->x = random_operand(rows, shape.columns);
  buffers->middle = DeviceArray<std::uint16_t>(cuda::operand_values(rows, hidden));
  buffers->out = DeviceArray<std::uint16_t>(static_cast<std::size_t>(rows) * width);
  std::vector<KernelCase::Launcher> launchers;
  for (int copy = 0; copy < copies; ++copy) {
    launchers.push_back([buffers, shape, first, rows, offset = copy * set_bytes](cudaStream_t stream) {
      const std::uint8_t* weights = buffers->weights.data() + offset;
      const OperandView x{buffers->x.data(), rows, shape.columns};
      if (first) {
        cuda::expert_gate_up(buffers->plan, shape, weights, x, buffers->routing_weights.data(), 10.0f,
                             {buffers->middle.data(), rows, hidden}, stream);
      } else {
        cuda::expert_down(buffers->plan, shape, weights, x, buffers->out.data(), stream);
      }
    });
  }
  return launchers;
}

// Expected number of experts hit, as the bytes of the roofline need it.
int experts_hit(const Setting& setting) {
  const std::vector<int> ids = random_ids(setting);
  std::vector<bool> hit(setting.experts);
  for (const int id : ids) hit[id] = true;
  return static_cast<int>(std::count(hit.begin(), hit.end(), true));
}

}  // namespace

std::vector<KernelCase> moe_cases() {
  std::vector<KernelCase> cases;
  for (const Setting& setting : settings) {
    for (const bool first : {true, false}) {
      const PackedShape shape = first ? first_shape : second_shape;
      const double values = static_cast<double>(shape.rows) * shape.columns;
      const int rows = setting.tokens * slots;
      const double row_bytes = 2.0 * shape.columns + (first ? 2.0 * hidden : 2.0 * width);
      const Work work{values * (0.5 + 1.0 / 32) * experts_hit(setting) + rows * row_bytes,
                      2.0 * values * rows};
      cases.push_back({"moe", fmt::format("{}:{}", first ? "w13" : "w2", setting.name), "rows", rows, work,
                       [&setting, first] { return prepare(setting, first); }});
    }
  }
  return cases;
}

}  // namespace thalweg::bench
