// Runs the tests of the CUDA backend; without a device the program says so and counts as skipped.
#include <gtest/gtest.h>

#include <cstdio>

#include "backend/cuda/device.hpp"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const char* reason = "";
  if (!::testing::GTEST_FLAG(list_tests) && !thalweg::cuda::device_usable(&reason)) {
    std::printf("skipped: %s\n", reason);
    return 77;
  }
  return RUN_ALL_TESTS();
}
