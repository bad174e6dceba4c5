// The shared expert's first product with SwiGLU and quantisation in its epilogue. Roofline: weight_gemm.cuh.
#include "backend/cuda/dense_work.cuh"
#include "backend/cuda/epilogue.cuh"

namespace thalweg::cuda {

void linear_swiglu(const LinearWeights& weights, const OperandView& x, float limit, const OperandView& out,
                   cudaStream_t stream) {
  const StoreSwiglu epilogue{out.data, out.atoms(), limit, nullptr, nullptr};
  launch_dense<Fp8Codec, true>(dense_work(weights, x), epilogue, column_parts(weights.shape), stream);
}

}  // namespace thalweg::cuda
