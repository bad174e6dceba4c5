// The dense products of a layer, the head and the router gate at the released shapes.
#include <memory>

#include "backend/cuda/linear.hpp"
#include "bench/bench_weights.hpp"
#include "bench/kernel_bench.hpp"

namespace thalweg::bench {
namespace {

using cuda::DeviceArray;
using cuda::LinearWeights;
using cuda::OperandView;
using cuda::WeightFormat;

enum class Kind { plain, swiglu, wide };

struct Product {
  const char* op;
  WeightFormat format;
  int rows;
  int columns;
  int groups;
  Kind kind;
};

constexpr Product products[] = {
    {"q_a+kv", WeightFormat::fp8, 1792, 5120, 1, Kind::plain},
    {"q_b", WeightFormat::fp8, 32768, 1280, 1, Kind::plain},
    {"q_b+index", WeightFormat::fp8, 36864, 1280, 1, Kind::plain},
    {"wv_grouped", WeightFormat::fp8, 8192, 4096, 8, Kind::plain},
    {"o", WeightFormat::fp8, 5120, 8192, 1, Kind::plain},
    {"shared_w13", WeightFormat::fp8, 4608, 5120, 1, Kind::swiglu},
    {"shared_w2", WeightFormat::fp8, 5120, 2304, 1, Kind::plain},
    {"engram_wkv", WeightFormat::fp8, 25600, 6144, 1, Kind::plain},
    {"gate", WeightFormat::bf16, 384, 5120, 1, Kind::wide},
    {"compressor", WeightFormat::bf16, 1024, 5120, 1, Kind::wide},
    {"lm_head", WeightFormat::bf16, 129280, 5120, 1, Kind::wide},
};

struct Buffers {
  DeviceArray<std::uint8_t> weights;
  DeviceArray<std::uint16_t> x;
  DeviceArray<std::uint16_t> out;
  DeviceArray<std::uint16_t> hidden;
};

std::vector<KernelCase::Launcher> prepare(const Product& product, int m) {
  const cuda::PackedShape shape{product.format, product.rows, product.columns};
  const int copies = rotating_copies(static_cast<double>(shape.bytes()));
  const auto buffers = std::make_shared<Buffers>();
  buffers->weights = random_weights(shape, copies);
  buffers->x = random_operand(product.groups * cuda::atom_count(m) * 8, product.columns);
  buffers->out = DeviceArray<std::uint16_t>(std::size_t{2} * m * product.rows);
  if (product.kind == Kind::swiglu) {
    buffers->hidden = DeviceArray<std::uint16_t>(cuda::operand_values(m, product.rows / 2));
  }
  std::vector<KernelCase::Launcher> launchers;
  for (int copy = 0; copy < copies; ++copy) {
    const LinearWeights weights{shape, buffers->weights.data() + copy * shape.bytes(), product.groups};
    launchers.push_back([buffers, weights, product, m](cudaStream_t stream) {
      const OperandView x{buffers->x.data(), m, product.columns};
      switch (product.kind) {
        case Kind::plain:
          return cuda::linear(weights, x, buffers->out.data(), stream);
        case Kind::swiglu:
          return cuda::linear_swiglu(weights, x, 10.0f, {buffers->hidden.data(), m, product.rows / 2},
                                     stream);
        case Kind::wide:
          return cuda::linear_float(weights, x, reinterpret_cast<float*>(buffers->out.data()), stream);
      }
    });
  }
  return launchers;
}

}  // namespace

std::vector<KernelCase> dense_cases() {
  std::vector<KernelCase> cases;
  for (const Product& product : products) {
    for (const int m : {1, 16, 64, 128, 384, 768, 2048, 8192}) {
      if (product.kind == Kind::wide && m > 768) continue;
      const double weights = static_cast<double>(product.rows) * product.columns;
      const double weight_bytes = weights * (product.format == WeightFormat::bf16 ? 2.0 : 1.0 + 1.0 / 1024);
      const double out_bytes = product.kind == Kind::wide ? 4.0 : product.kind == Kind::swiglu ? 1.0 : 2.0;
      const Work work{weight_bytes + m * (2.0 * product.columns * product.groups + out_bytes * product.rows),
                      2.0 * weights * m};
      cases.push_back({"dense", product.op, "M", m, work, [&product, m] { return prepare(product, m); }});
    }
  }
  return cases;
}

}  // namespace thalweg::bench
