// `thalweg inspect checkpoint` as a user runs it, on good and on spoiled checkpoints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <vector>

#include "base/json.hpp"
#include "support/program.hpp"

namespace thalweg::app {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

const fs::path kTiny = THALWEG_SOURCE_DIR "/tests/data/tiny/model";
const std::string kShard = "model-00002-of-00003.safetensors";

// A copy of the tiny checkpoint to spoil. Files that nothing writes to are links.
struct Copy {
  Copy() {
    for (const auto& entry : fs::directory_iterator(kTiny)) {
      fs::create_symlink(entry.path(), folder.path() / entry.path().filename());
    }
  }

  fs::path own(const std::string& name) const {
    fs::remove(folder.path() / name);
    fs::copy_file(kTiny / name, folder.path() / name);
    fs::permissions(folder.path() / name, fs::perms::owner_write, fs::perm_options::add);
    return folder.path() / name;
  }

  void overwrite(const std::string& name, std::streamoff at, const std::string& bytes) const {
    std::fstream file(own(name), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(at);
    file << bytes;
  }

  TemporaryFolder folder;
};

ProgramResult inspect(const fs::path& model, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"inspect", "checkpoint", "--model", model};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments);
}

TEST(InspectCheckpoint, ListsEveryTensorAsJson) {
  const ProgramResult result = inspect(kTiny, {"--json"});
  ASSERT_EQ(result.exit_code, 0) << result.messages;
  const Json document = parse_json(result.output, "output");
  EXPECT_EQ(document["totals"]["tensors"], 1571);
  EXPECT_EQ(document["totals"]["bytes"], 7'230'022);
  EXPECT_EQ(document["config"]["text_config"]["hidden_size"], 128);
  std::int64_t bytes = 0;
  for (const Json& tensor : document["tensors"]) bytes += tensor["bytes"].get<std::int64_t>();
  EXPECT_EQ(bytes, 7'230'022);
  const auto named = std::ranges::find_if(document["tensors"], [](const Json& tensor) {
    return tensor["name"] == "layers.3.ffn.experts.7.w2.weight";
  });
  ASSERT_NE(named, document["tensors"].end());
  EXPECT_EQ((*named)["dtype"], "I8");
  EXPECT_EQ((*named)["shape"], (Json{128, 32}));
}

TEST(InspectCheckpoint, TakesTheBundledModelByDefault) {
  const ProgramResult result = run_program({"inspect", "checkpoint"});
  EXPECT_EQ(result.exit_code, 0) << result.messages;
  EXPECT_THAT(result.output, HasSubstr("tensors  1866"));
  EXPECT_THAT(result.output, HasSubstr("bytes    37840312"));
}

struct Case {
  const char* name;
  std::function<void(const Copy&)> spoil;
  std::vector<std::string> message;
};

std::vector<Case> cases() {
  const std::string index = "model.safetensors.index.json";
  return {
      {"CutByFourKilobytes",
       [](const Copy& copy) {
         const fs::path shard = copy.own(kShard);
         fs::resize_file(shard, fs::file_size(shard) - 4096);
       },
       {kShard, "tensor \"", "4096 bytes short"}},
      {"CutInsideTheHeader",
       [](const Copy& copy) { fs::resize_file(copy.own(kShard), 500); },
       {kShard, "bytes short"}},
      {"HeaderLengthTwoTo63",
       [](const Copy& copy) { copy.overwrite(kShard, 0, std::string("\0\0\0\0\0\0\0\x80", 8)); },
       {kShard, "9223372036854775808"}},
      {"TrailingBytes",
       [](const Copy& copy) { std::ofstream(copy.own(kShard), std::ios::binary | std::ios::app) << "xyz"; },
       {kShard, "3 trailing bytes"}},
      {"HeaderIsNotJson",
       [](const Copy& copy) { copy.overwrite(kShard, 9, "\xff\xff"); },
       {kShard, "not valid JSON"}},
      {"ShardMissing",
       [](const Copy& copy) { fs::remove(copy.folder.path() / kShard); },
       {kShard, "cannot open"}},
      {"IndexMissing", [=](const Copy& copy) { fs::remove(copy.folder.path() / index); }, {"neither"}},
      {"IndexIsNotJson", [=](const Copy& copy) { copy.overwrite(index, 0, "x"); }, {index, "not valid JSON"}},
      {"ConfigMissing",
       [](const Copy& copy) { fs::remove(copy.folder.path() / "config.json"); },
       {"config.json"}},
  };
}

TEST(InspectCheckpoint, FailsAsLoadingWouldNamingFileAndFault) {
  for (const Case& c : cases()) {
    const Copy copy;
    c.spoil(copy);
    const ProgramResult result = inspect(copy.folder.path());
    EXPECT_EQ(result.exit_code, 3) << c.name;
    EXPECT_EQ(result.output, "") << c.name;
    EXPECT_EQ(std::ranges::count(result.messages, '\n'), 1) << c.name;
    for (const std::string& part : c.message) EXPECT_THAT(result.messages, HasSubstr(part)) << c.name;
  }
}

TEST(InspectCheckpoint, AFullDiskOnOutputIsAFailure) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const ProgramResult result = run_program({"inspect", "checkpoint"}, "", "/dev/full");
  EXPECT_EQ(result.exit_code, 1);
}

}  // namespace
}  // namespace thalweg::app
