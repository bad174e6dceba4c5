# The CUDA backend: compiler, architectures and flags. Included only with -DTHALWEG_CUDA=ON.

if(NOT DEFINED CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
  set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90a-real)
endif()
# The wgmma kernels exist for SM90 alone; other architectures get the general ones.
if(CMAKE_CUDA_ARCHITECTURES MATCHES "^90a")
  set(THALWEG_CUDA_SM90 ON)
endif()
enable_language(CUDA)
# CMake 3.25 does not know how nvcc 13 is told C++20: it is said by hand below.
set(CMAKE_CUDA_STANDARD_REQUIRED OFF)
# The program must start, and say what is missing, on a machine without a driver: static runtime, no -lcuda.
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
if(CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()
find_package(CUDAToolkit 13.0 REQUIRED)

add_library(thalweg_cuda_options INTERFACE)
target_include_directories(thalweg_cuda_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(thalweg_cuda_options INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --expt-relaxed-constexpr -lineinfo -Xcompiler=-Wall,-Wextra>
  # As on the host: fused multiply-adds only where the code says so.
  $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>)
