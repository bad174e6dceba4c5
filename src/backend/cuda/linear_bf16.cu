// bf16 weights with fp32 results. Roofline: weight bytes / HBM rate (head: 1.32 GB, 289 us); schedule:
// weight_gemm.cuh.
#include "backend/cuda/dense_work.cuh"
#include "backend/cuda/epilogue.cuh"

namespace thalweg::cuda {

void linear_float(const LinearWeights& weights, const OperandView& x, float* out, cudaStream_t stream) {
  const DenseWork work = dense_work(weights, x);
  const StoreFloat epilogue{out, weights.shape.rows};
  const int parts = column_parts(weights.shape);
  if (parts > 1) {
    launch_dense<Bf16Codec, true>(work, epilogue, parts, stream);
  } else {
    launch_dense<Bf16Codec, false>(work, epilogue, parts, stream);
  }
}

}  // namespace thalweg::cuda
