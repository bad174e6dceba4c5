// FP8 products with a bf16 result. Roofline and schedule: weight_gemm.cuh.
#include "backend/cuda/dense_work.cuh"
#include "backend/cuda/epilogue.cuh"

namespace thalweg::cuda {

void linear(const LinearWeights& weights, const OperandView& x, std::uint16_t* out, cudaStream_t stream) {
  const DenseWork work = dense_work(weights, x);
  const StoreBf16 epilogue{out, weights.shape.rows};
  const int parts = column_parts(weights.shape);
  if (parts > 1) {
    launch_dense<Fp8Codec, true>(work, epilogue, parts, stream);
  } else {
    launch_dense<Fp8Codec, false>(work, epilogue, parts, stream);
  }
}

}  // namespace thalweg::cuda
