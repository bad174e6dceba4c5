// Loading whole checkpoints that are right.
#include <gtest/gtest.h>

#include "checkpoint/checkpoint.hpp"

namespace thalweg::checkpoint {
namespace {

std::filesystem::path source_directory() {
  return THALWEG_SOURCE_DIR;
}

TEST(CheckpointLoad, ReadsMini) {
  const Checkpoint checkpoint = Checkpoint::load(source_directory() / "models/mini");
  EXPECT_EQ(checkpoint.tensors().size(), 1866U);
  EXPECT_EQ(checkpoint.total_bytes(), 37'840'312);
  EXPECT_EQ(checkpoint.weights().layers.size(), 9U);
  EXPECT_EQ(checkpoint.weights().draft->layers.size(), 2U);
}

TEST(CheckpointLoad, ReadsEveryGoldenModel) {
  for (const char* name : {"tiny", "wide", "long", "realheads"}) {
    const auto directory = source_directory() / "../shared/golden" / name / "model";
    if (!std::filesystem::exists(directory)) GTEST_SKIP() << "golden data directory is missing";
    EXPECT_NO_THROW(Checkpoint::load(directory)) << name;
  }
}

}  // namespace
}  // namespace thalweg::checkpoint
