#include "base/error.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace thalweg {
namespace {

TEST(Error, CarriesTheExitCodeOfItsKind) {
  EXPECT_EQ(static_cast<int>(WorkError("x").fault()), 1);
  EXPECT_EQ(static_cast<int>(UsageError("x").fault()), 2);
  EXPECT_EQ(static_cast<int>(InputError("x", "y").fault()), 3);
}

TEST(Error, InputErrorNamesSubjectExpectedAndFound) {
  const InputError error("config.json: head_dim", "512", "500");
  EXPECT_STREQ(error.what(), "config.json: head_dim: expected 512, found 500");
  EXPECT_EQ(error.subject(), "config.json: head_dim");
  EXPECT_STREQ(InputError("a.safetensors", "is cut short").what(), "a.safetensors: is cut short");
}

TEST(Error, EveryKindIsCaughtAsRuntimeError) {
  EXPECT_THROW(throw WorkError("x"), std::runtime_error);
  EXPECT_THROW(throw UsageError("x"), Error);
  EXPECT_THROW(throw InputError("x", "y"), Error);
}

}  // namespace
}  // namespace thalweg
