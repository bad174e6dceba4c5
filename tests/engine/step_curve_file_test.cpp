// Stored step-cost curves: read back as written, measured when they are not there, refused by name when
// spoiled.
#include "engine/speculation/step_curve_file.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.hpp"
#include "engine_support.hpp"
#include "support/temporary_folder.hpp"

namespace thalweg::engine {
namespace {

constexpr const char* kHead = R"({"format":"thalweg step costs 1","curves":)";

TEST(StepCurveFile, ACurveIsMeasuredOnceAndThenRead) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "curves.json";
  int measured = 0;
  const auto curve = [&](const std::string& key) {
    return stored_curve(file, key, [&] {
      ++measured;
      return std::vector<StepCostPoint>{{1, 0.1}, {7, 1.0 / 3}};
    });
  };
  curve("a");
  curve("b");
  const auto again = curve("a");
  EXPECT_EQ(measured, 2);
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[1].rows, 7);
  EXPECT_EQ(again[1].ms, 1.0 / 3);
}

TEST(StepCurveFile, WhatIsSpoiledIsRefusedWithThePlaceAndLeftAsItIs) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "curves.json";
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"[]", ": format"},
      {R"({"format":"thalweg step costs 2","curves":{}})", ": format"},
      {R"({"format":"thalweg step costs 1"})", ": curves"},
      {R"({"format":"thalweg step costs 1","curves":{},"more":1})", ""},
      {std::string(kHead) + "[]}", ": curves"},
      {std::string(kHead) + R"({"k":[]}})", R"(: curves["k"])"},
      {std::string(kHead) + R"({"k":[1]}})", R"(: curves["k"][0])"},
      {std::string(kHead) + R"({"k":[[1,2,3]]}})", R"(: curves["k"][0])"},
      {std::string(kHead) + R"({"k":[[1.5,2]]}})", R"(: curves["k"][0])"},
      {std::string(kHead) + R"({"k":[[0,2]]}})", R"(: curves["k"][0])"},
      {std::string(kHead) + R"({"k":[[1,2],[1,3]]}})", R"(: curves["k"][1])"},
      {std::string(kHead) + R"({"k":[[99999999,2]]}})", R"(: curves["k"][0])"},
      {std::string(kHead) + R"({"k":[[1,0]]}})", R"(: curves["k"][0])"},
      {std::string(kHead) + R"({"k":[[1,-1]]}})", R"(: curves["k"][0])"},
      {std::string(kHead) + R"({"k":[[1,"2"]]}})", R"(: curves["k"][0])"},
      {std::string(kHead) + R"({"k":[[1,2]],"k":[[1,2]]}})", ""},
  };
  for (const auto& [text, place] : cases) {
    std::ofstream(file, std::ios::binary) << text;
    try {
      stored_curve(file, "k", []() -> std::vector<StepCostPoint> { return {{1, 1}}; });
      ADD_FAILURE() << text << " was accepted";
    } catch (const InputError& error) {
      EXPECT_TRUE(error.subject().starts_with(file.string() + place)) << text << ": " << error.what();
    }
    std::ifstream in(file, std::ios::binary);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), text);
  }
}

TEST(StepCurveFile, AnEngineWithAFileMeasuresAtItsFirstStartOnly) {
  const TemporaryFolder folder;
  EngineOptions options = testing::device_options();
  options.speculation = parse_speculation("adaptive");
  options.step_costs = folder.path() / "curves.json";
  { const Engine engine(testing::model_of("mini"), options); }
  const auto written = std::filesystem::last_write_time(options.step_costs);
  { const Engine engine(testing::model_of("mini"), options); }
  EXPECT_EQ(std::filesystem::last_write_time(options.step_costs), written);
  options.sequences = 3;  // another curve
  { const Engine engine(testing::model_of("mini"), options); }
  std::ifstream in(options.step_costs, std::ios::binary);
  EXPECT_EQ(parse_step_curves(std::string(std::istreambuf_iterator<char>(in), {}), "file").size(), 2U);
}

TEST(StepCurveFile, AFileThatCannotBeWrittenIsAnError) {
  EXPECT_THROW(stored_curve("/nonexistent/curves.json", "k",
                            []() -> std::vector<StepCostPoint> {
                              return {{1, 1}};
                            }),
               WorkError);
}

}  // namespace
}  // namespace thalweg::engine
