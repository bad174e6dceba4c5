#include "app/doctor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/commands.hpp"
#include "app/model_option.hpp"
#include "base/error.hpp"
#include "support/program.hpp"

namespace thalweg::app {
namespace {

TEST(CpuInfo, CountsCoresAndThreadsAndPicksFeatures) {
  const Processor processor = read_cpuinfo(
      "processor\t: 0\nmodel name\t: Example CPU @ 2.0GHz\nphysical id\t: 0\ncore id\t\t: 0\n"
      "flags\t\t: fpu sse4_1 avx2 fma avx512f whatever amx_tile\n\n"
      "processor\t: 1\nmodel name\t: Example CPU @ 2.0GHz\nphysical id\t: 0\ncore id\t\t: 0\nflags\t: fpu\n\n"
      "processor\t: 2\nmodel name\t: Example CPU @ 2.0GHz\nphysical id\t: 1\ncore id\t\t: 0\nflags\t: fpu\n");
  EXPECT_EQ(processor.model, "Example CPU @ 2.0GHz");
  EXPECT_EQ(processor.threads, 3U);
  EXPECT_EQ(processor.cores, 2U);
  EXPECT_EQ(processor.features, (std::vector<std::string>{"sse4_1", "avx2", "fma", "avx512f", "amx_tile"}));
}

TEST(CpuInfo, ReadsTheArmLayout) {
  const Processor processor =
      read_cpuinfo("processor\t: 0\nFeatures\t: fp asimd asimddp sve\nCPU part\t: 0xd40\n");
  EXPECT_EQ(processor.threads, 1U);
  EXPECT_EQ(processor.cores, 0U);
  EXPECT_EQ(processor.model, "");
  EXPECT_EQ(processor.features, (std::vector<std::string>{"asimd", "asimddp", "sve"}));
}

TEST(CpuInfo, SurvivesAnythingElse) {
  for (const char* text : {"", "\n\n\n", ":", "flags", "flags:", "processor", "core id : \n: x\n"}) {
    EXPECT_TRUE(read_cpuinfo(text).features.empty()) << text;
  }
}

TEST(MemInfo, CountsInBytes) {
  const Memory memory = read_meminfo("MemTotal:       24684092 kB\nMemFree: 5 kB\nMemAvailable:   100 kB\n");
  EXPECT_EQ(memory.total, 24684092ULL * 1024);
  EXPECT_EQ(memory.available, 102400U);
  EXPECT_EQ(read_meminfo("").total, 0U);
}

Diagnosis bare_machine() {
  Diagnosis diagnosis;
  diagnosis.memory = {.total = 8ULL << 30, .available = 4ULL << 30, .limit = {}};
  diagnosis.gpu.problem = "no driver";
  return diagnosis;
}

Feature feature_of(const Diagnosis& diagnosis, const std::string& name) {
  const auto features = judge_features(diagnosis);
  const auto found =
      std::find_if(features.begin(), features.end(), [&](const Feature& f) { return f.name == name; });
  return found == features.end() ? Feature{} : *found;
}

TEST(Doctor, NamesWhatABareMachineLacks) {
  const Diagnosis diagnosis = bare_machine();
  EXPECT_TRUE(feature_of(diagnosis, "inference on the CPU").missing.empty());
  EXPECT_EQ(feature_of(diagnosis, "inference on NVIDIA GPUs").missing, std::vector<std::string>{"no driver"});
  EXPECT_EQ(feature_of(diagnosis, "ranks on several GPUs").missing.size(), 2U);
  EXPECT_EQ(feature_of(diagnosis, "ranks on CPUs").missing.size(), 1U);
}

TEST(Doctor, WeightsThatDoNotFitTheMemoryAreNamed) {
  Diagnosis diagnosis = bare_machine();
  diagnosis.model = ModelDirectory{.path = "big", .weight_bytes = 3ULL << 30, .free_bytes = 0, .disk = {}};
  EXPECT_TRUE(feature_of(diagnosis, "inference on the CPU").missing.empty());
  diagnosis.memory.limit = 2ULL << 30;
  EXPECT_EQ(feature_of(diagnosis, "inference on the CPU").missing,
            std::vector<std::string>{"memory for the weights: 3.0 GiB are larger than 2.0 GiB"});
}

TEST(Doctor, NothingIsReadyThatIsNotInTheBuild) {
  for (const Json& feature : to_json(bare_machine()).at("features")) {
    EXPECT_TRUE(!feature.at("ready") || feature.at("in_build")) << feature;
  }
}

TEST(Doctor, TheServiceIsInTheBuildIfTheCommandIs) {
  CLI::App app;
  add_commands(app);
  const bool served =
      !app.get_subcommands([](const CLI::App* c) { return c->get_name() == "serve"; }).empty();
  EXPECT_EQ(feature_of(bare_machine(), "HTTP service").in_build, served);
}

TEST(Doctor, UnknownFactsAreNullNotInvented) {
  const Json json = to_json(bare_machine());
  EXPECT_TRUE(json.at("processor").at("model").is_null());
  EXPECT_TRUE(json.at("memory").at("limit_bytes").is_null());
  EXPECT_TRUE(json.at("nccl").is_null());
  EXPECT_TRUE(json.at("model").is_null());
}

TEST(Doctor, MeasuresTheLargestFileOfTheModelDirectory) {
  const TemporaryFolder folder;
  folder.write("small", std::string(10, 'x'));
  folder.write("large", std::string(100'000, 'x'));
  const auto speed = measure_disk_speed(folder.path());
  ASSERT_TRUE(speed);
  EXPECT_EQ(speed->file.filename(), "large");
  EXPECT_EQ(speed->bytes, 100'000U);
}

TEST(Doctor, AnEmptyFolderHasNothingToMeasure) {
  const TemporaryFolder folder;
  EXPECT_FALSE(measure_disk_speed(folder.path()));
  EXPECT_FALSE(measure_disk_speed(folder.path() / "none"));
}

TEST(Doctor, RefusesAFileInPlaceOfTheModelDirectory) {
  const TemporaryFolder folder;
  EXPECT_THROW(examine_machine(folder.write("file", "x")), InputError);
}

TEST(Doctor, PrintsOneJsonDocument) {
  const ProgramResult result = run_program({"doctor", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.messages;
  EXPECT_EQ(result.messages, "");
  const Json json = parse_json(result.output, "doctor");
  EXPECT_GE(json.at("processor").at("usable_threads").get<int>(), 1);
  EXPECT_GT(json.at("memory").at("total_bytes").get<std::uint64_t>(), 0U);
  EXPECT_GT(json.at("model").at("weight_bytes").get<std::uint64_t>(), 37'000'000U);
  EXPECT_TRUE(json.at("features").at(0).at("in_build").get<bool>());
}

TEST(Doctor, PrintsATableForPeople) {
  const ProgramResult result = run_program({"doctor"});
  ASSERT_EQ(result.exit_code, 0) << result.messages;
  for (const char* row : {"processor", "memory", "gpu", "model", "disk", "features", "not in this build"}) {
    EXPECT_NE(result.output.find(row), std::string::npos) << row;
  }
}

TEST(ModelOption, FindsTheBundledCheckpointAboveTheProgram) {
  // The test program lies in the build folder of the source tree, as thalweg does.
  const auto bundled = bundled_model();
  ASSERT_TRUE(bundled);
  EXPECT_TRUE(std::filesystem::exists(*bundled / "model.safetensors.index.json"));
  EXPECT_EQ(model_directory(""), *bundled);
  EXPECT_EQ(model_directory("elsewhere"), "elsewhere");
}

}  // namespace
}  // namespace thalweg::app
