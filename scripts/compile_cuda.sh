#!/usr/bin/env bash
# Compiles the CUDA backend for SM90 (all kernels) and SM100 (the general ones); runs
# nothing on a device. Says that it is skipped where there is no nvcc.
#
# usage: scripts/compile_cuda.sh
set -euo pipefail
cd "$(dirname "$0")/.."

nvcc=$(command -v nvcc || true)
[ -n "$nvcc" ] || [ ! -x /usr/local/cuda/bin/nvcc ] || nvcc=/usr/local/cuda/bin/nvcc
if [ -z "$nvcc" ]; then
  printf '%s\n' "compile_cuda: skipped, no nvcc here" >&2
  exit 0
fi
scripts/install_dependencies.sh build
for preset in cuda cuda-sm100; do
  cmake --preset "$preset" -DTHALWEG_TESTS=OFF -DCMAKE_CUDA_COMPILER="$nvcc" --log-level=WARNING
  ninja -C "build/$preset" thalweg_cuda
done
printf '%s\n' "compile_cuda: SM90 and SM100 compiled; nothing was run" >&2
