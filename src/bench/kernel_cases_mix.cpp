// The small kernels between the products: hyper-connections with norm and quantisation, router, sorting,
// gathering, combining.
#include <memory>
#include <random>

#include "backend/cuda/experts.hpp"
#include "backend/cuda/mix.hpp"
#include "backend/cuda/router.hpp"
#include "bench/bench_weights.hpp"
#include "bench/kernel_bench.hpp"
#include "bench/random_fill.hpp"

namespace thalweg::bench {
namespace {

using cuda::DeviceArray;
using cuda::OperandView;

constexpr int width = 5120;
constexpr int experts = 384;
constexpr int slots = 6;

struct MixBuffers {
  DeviceArray<std::uint16_t> h, output, norm_weight, out;
  DeviceArray<float> pre, post, comb, fn, base, scale;
  std::unique_ptr<cuda::MixWorkspace> workspace;
};

DeviceArray<float> floats(std::size_t count, float low, float high) {
  DeviceArray<float> memory(count);
  fill_float(memory.data(), count, low, high, static_cast<std::uint32_t>(count));
  return memory;
}

DeviceArray<std::uint16_t> halves(std::size_t count, float size) {
  DeviceArray<std::uint16_t> memory(count);
  fill_bf16(memory.data(), count, size, static_cast<std::uint32_t>(count));
  return memory;
}

std::vector<KernelCase::Launcher> prepare_mix(int rows) {
  const std::size_t row_values = static_cast<std::size_t>(rows) * width;
  const int copies = rotating_copies(static_cast<double>(row_values) * 8);
  const auto buffers = std::make_shared<MixBuffers>();
  buffers->h = halves(row_values * 4 * copies, 1.0f);
  buffers->output = halves(row_values, 1.0f);
  buffers->norm_weight = halves(width, 1.0f);
  buffers->out = DeviceArray<std::uint16_t>(cuda::operand_values(rows, width));
  buffers->pre = floats(static_cast<std::size_t>(rows) * 4, 0.1f, 0.6f);
  buffers->post = floats(static_cast<std::size_t>(rows) * 4 + 1, 0.1f, 0.6f);
  buffers->comb = floats(static_cast<std::size_t>(rows) * 16, 0.1f, 0.3f);
  buffers->fn = floats(std::size_t{24} * 4 * width, -0.01f, 0.01f);
  buffers->base = floats(24, -1, 1);
  buffers->scale = floats(3, 0.5f, 1);
  buffers->workspace = std::make_unique<cuda::MixWorkspace>(rows, width);
  std::vector<KernelCase::Launcher> launchers;
  for (int copy = 0; copy < copies; ++copy) {
    launchers.push_back([buffers, rows, offset = copy * row_values * 4](cudaStream_t stream) {
      const cuda::MixCoefficients coefficients{buffers->pre.data(), buffers->post.data(),
                                               buffers->comb.data()};
      cuda::MixInput input;
      input.h = buffers->h.data() + offset;
      input.rows = rows;
      input.width = width;
      input.output = buffers->output.data();
      input.last = coefficients;
      input.weights = {buffers->fn.data(), buffers->base.data(), buffers->scale.data()};
      input.norm_weight = buffers->norm_weight.data();
      input.epsilon = 1e-20f;
      input.mix_epsilon = 1e-6f;
      input.iterations = 20;
      cuda::mix_sublayer(input, *buffers->workspace, coefficients, {buffers->out.data(), rows, width},
                         nullptr, stream);
    });
  }
  return launchers;
}

struct RouteBuffers {
  DeviceArray<float> logits, bias, weights;
  DeviceArray<int> ids;
  cuda::ExpertPlan plan;
  DeviceArray<std::uint16_t> x, sorted, rows, out;

  explicit RouteBuffers(int tokens) : plan(tokens, slots, experts) {}
};

std::shared_ptr<RouteBuffers> route_buffers(int tokens) {
  const auto buffers = std::make_shared<RouteBuffers>(tokens);
  buffers->logits = floats(static_cast<std::size_t>(tokens) * experts, -3, 3);
  buffers->bias = floats(experts, -0.1f, 0.1f);
  buffers->ids = DeviceArray<int>(static_cast<std::size_t>(tokens) * slots);
  buffers->weights = DeviceArray<float>(static_cast<std::size_t>(tokens) * slots);
  cuda::route({buffers->logits.data(), tokens, experts, buffers->bias.data(), nullptr, nullptr, slots, 1.5f},
              buffers->ids.data(), buffers->weights.data(), nullptr);
  buffers->plan.sort(buffers->ids.data(), tokens, nullptr);
  const int rows = buffers->plan.row_capacity();
  buffers->x = random_operand(tokens, width);
  buffers->sorted = DeviceArray<std::uint16_t>(cuda::operand_values(rows, width));
  buffers->rows = halves(static_cast<std::size_t>(rows) * width, 1.0f);
  buffers->out = DeviceArray<std::uint16_t>(static_cast<std::size_t>(tokens) * width);
  return buffers;
}

}  // namespace

std::vector<KernelCase> mix_cases() {
  std::vector<KernelCase> cases;
  for (const int m : {1, 64, 128, 384, 768, 4096, 8192}) {
    const double values = static_cast<double>(m) * width;
    cases.push_back({"hc", "mega_mhc", "M", m,
                     Work{values * (4 + 4 + 1 + 1) * 2 + 24 * 4 * width * 4.0, values * 4 * 48},
                     [m] { return prepare_mix(m); }});
  }
  return cases;
}

std::vector<KernelCase> routing_cases() {
  std::vector<KernelCase> cases;
  for (const int m : {64, 128, 384, 768, 8192}) {
    const double values = static_cast<double>(m) * width;
    cases.push_back({"small", "router", "M", m, Work{m * 1584.0, 0}, [m] {
                       const auto buffers = route_buffers(m);
                       return std::vector<KernelCase::Launcher>{[buffers, m](cudaStream_t stream) {
                         cuda::route({buffers->logits.data(), m, experts, buffers->bias.data(), nullptr,
                                      nullptr, slots, 1.5f},
                                     buffers->ids.data(), buffers->weights.data(), stream);
                       }};
                     }});
    cases.push_back({"small", "sort", "M", m, Work{m * 50.0, 0}, [m] {
                       const auto buffers = route_buffers(m);
                       return std::vector<KernelCase::Launcher>{[buffers, m](cudaStream_t stream) {
                         buffers->plan.sort(buffers->ids.data(), m, stream);
                       }};
                     }});
    cases.push_back({"small", "gather", "M", m, Work{values * 2 * 7, 0}, [m] {
                       const auto buffers = route_buffers(m);
                       return std::vector<KernelCase::Launcher>{[buffers, m](cudaStream_t stream) {
                         cuda::gather_expert_rows(
                             buffers->plan, {buffers->x.data(), m, width},
                             {buffers->sorted.data(), buffers->plan.row_capacity(), width}, stream);
                       }};
                     }});
    cases.push_back({"small", "combine", "M", m, Work{values * 2 * 7, 0}, [m] {
                       const auto buffers = route_buffers(m);
                       return std::vector<KernelCase::Launcher>{[buffers](cudaStream_t stream) {
                         cuda::combine_experts(buffers->plan, buffers->rows.data(), nullptr, width,
                                               buffers->out.data(), stream);
                       }};
                     }});
  }
  return cases;
}

}  // namespace thalweg::bench
