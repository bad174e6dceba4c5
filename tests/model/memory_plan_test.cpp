// The memory account against the published sizes of the released checkpoint, and what a plan must obey.
#include "model/memory_plan.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "model/cache_layout.hpp"

namespace thalweg::model {
namespace {

std::filesystem::path source_directory() {
  return THALWEG_SOURCE_DIR;
}

const MemoryPlanner& released() {
  static const MemoryPlanner planner(
      checkpoint::load_config(source_directory() / "tests/data/released_config.json"));
  return planner;
}

constexpr std::int64_t kGigabyte = 1'000'000'000;

DeviceSet gpus(int n, std::int64_t gigabytes = 141) {
  return {
      .gpus = n, .gpu_memory = gigabytes * kGigabyte, .host_memory = std::nullopt, .reserve = 4 * kGigabyte};
}

TEST(MemoryPlan, AccountsForTheReleasedCheckpointPartByPart) {
  const std::map<std::string, std::pair<std::int64_t, std::int64_t>> published = {
      {"routed experts", {543'581'798'400, 288'777'830'400}},
      {"Engram tables", {196'613'849'600, 202'758'032'400}},
      {"attention", {5'064'696'320, 5'069'721'600}},
      {"shared experts", {1'415'577'600, 1'416'960'000}},
      {"embedding", {661'913'600, 1'323'827'200}},
      {"head", {661'913'600, 1'323'827'200}},
      {"Engram projections", {314'654'720, 315'043'840}},
      {"routers", {78'673'920, 157'409'280}},
      {"indexers", {43'516'416, 45'130'752}},
      {"stream mixing", {39'323'760, 157'295'040}},
      {"compressors", {18'352'128, 36'704'256}},
      {"norms", {414'720, 829'440}},
      {"draft: routed experts", {13'589'544'960, 7'219'445'760}},
      {"draft: everything else", {635'817'570, 713'428'872}},
      {"vision", {485'268'480, 970'536'960}},
  };
  std::int64_t tensors = 0;
  std::int64_t bytes = 0;
  std::int64_t parameters = 0;
  for (const WeightPart& part : released().parts()) {
    EXPECT_EQ(part.parameters, published.at(part.name).first) << part.name;
    EXPECT_EQ(part.bytes, published.at(part.name).second) << part.name;
    tensors += part.tensors;
    bytes += part.bytes;
    parameters += part.parameters;
  }
  EXPECT_EQ(released().parts().size(), published.size());
  EXPECT_EQ(tensors, 96'085);
  EXPECT_EQ(bytes, 510'286'023'000);
  EXPECT_EQ(parameters, 763'205'315'794);
}

TEST(MemoryPlan, SpreadsExpertsAndCopiesTheRest) {
  const MemoryPlan plan = released().plan(gpus(4), {.context = 4096, .sequences = 4, .batch_tokens = 1024});
  std::map<std::string, std::int64_t> terms;
  for (const MemoryTerm& term : plan.device.terms) terms[term.name] = term.bytes;
  EXPECT_EQ(terms.at("routed experts"), 288'777'830'400 / 4);
  EXPECT_EQ(terms.at("draft: routed experts"), 7'219'445'760 / 4);
  EXPECT_EQ(terms.count("Engram tables"), 0U);
  EXPECT_EQ(terms.at("cache pages"), 32 * 114'048);
  EXPECT_EQ(terms.at("state slots"), 3'128'928);
  EXPECT_EQ(plan.host->terms.front().bytes, 202'758'032'400);
  EXPECT_TRUE(plan.fits());
}

TEST(MemoryPlan, PutsAnUnevenRestOfExpertsOnTheFullestDevice) {
  const MemoryPlan plan = released().plan(gpus(5), {.context = 128, .sequences = 1, .batch_tokens = 1});
  EXPECT_EQ(plan.device.terms.front().bytes, 288'777'830'400 / 384 * 77);  // ceil(384 / 5)
}

TEST(MemoryPlan, DoesNotFitTheReleasedModelOnOneDevice) {
  const MemoryPlan plan = released().plan(gpus(1), {.context = 128, .sequences = 1, .batch_tokens = 1});
  EXPECT_FALSE(plan.fits());
  EXPECT_EQ(plan.tightest().largest().name, "routed experts");
  EXPECT_EQ(released().most_sequences(gpus(1), 128, 1), 0);
}

TEST(MemoryPlan, JudgesHostMemoryForTheTables) {
  DeviceSet devices = gpus(8);
  devices.host_memory = 128 * kGigabyte;
  const Load load{.context = 4096, .sequences = 8, .batch_tokens = 1024};
  EXPECT_FALSE(released().plan(devices, load).fits());
  EXPECT_EQ(released().plan(devices, load).tightest().largest().name, "Engram tables");
  devices.engram_on_device = true;
  EXPECT_TRUE(released().plan(devices, load).fits());
}

TEST(MemoryPlan, TheMostThatFitsFitsAndOneMoreDoesNot) {
  for (const int n : {4, 8}) {
    for (const std::int64_t context : {4096, 131072, 1048576}) {
      const std::int64_t most = released().most_sequences(gpus(n), context, 8192);
      ASSERT_GT(most, 0);
      EXPECT_EQ(most % n, 0) << "sequences are spread evenly";
      EXPECT_TRUE(released().plan(gpus(n), {context, most, 8192}).fits());
      EXPECT_FALSE(released().plan(gpus(n), {context, most + 1, 8192}).fits());
      const std::int64_t longest = released().longest_context(gpus(n), most, 8192);
      EXPECT_GE(longest, context);
    }
  }
}

TEST(MemoryPlan, HugeLoadsSaturateInsteadOfOverflowing) {
  const Load load{.context = INT64_MAX / 256, .sequences = INT64_MAX / 64, .batch_tokens = INT64_MAX / 8};
  const MemoryPlan plan = released().plan(gpus(8), load);
  EXPECT_FALSE(plan.fits());
  EXPECT_GT(plan.device.sum(), 0);
}

TEST(MemoryPlan, MiniFitsAnywhere) {
  const MemoryPlanner mini(checkpoint::load_config(source_directory() / "models/mini/config.json"));
  std::int64_t bytes = 0;
  for (const WeightPart& part : mini.parts()) bytes += part.bytes;
  EXPECT_EQ(bytes, 37'840'312);
  const DeviceSet host{.host_memory = kGigabyte};
  EXPECT_GT(mini.most_sequences(host, 4096, 256), 0);
}

}  // namespace
}  // namespace thalweg::model
