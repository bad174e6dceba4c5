#include "app/configuration.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "support/temporary_folder.hpp"

namespace thalweg::app {
namespace {

/// A program with the command `make` (options of every kind) and the nested command `look deep`.
class Configuration : public testing::Test {
 protected:
  Configuration() {
    app_.name("program");
    app_.require_subcommand(1);
    CLI::App* make = app_.add_subcommand("make", "");
    make->add_option("--model", model_, "")->required();
    make->add_option("--max-tokens", max_tokens_, "")->check(CLI::Range(1, 100));
    make->add_option("--temperature", temperature_, "");
    make->add_option("--stop", stop_, "");
    make->add_option("--bias", bias_, "")->expected(1)->take_all();  // one value each time it is given
    make->add_flag("--stream,!--no-stream", stream_, "");
    make->add_option("-n", count_, "");
    make->add_option("FILE", file_, "");
    make->callback([this] { ++runs_; });
    CLI::App* look = app_.add_subcommand("look", "");
    look->require_subcommand(1);
    look->add_subcommand("deep", "")->add_option("--depth", depth_, "");
    add_configuration(app_);
  }

  /// Parses the arguments behind `--config`; the file holds `text`.
  void parse(const std::string& text, std::vector<std::string> arguments) {
    const auto file = folder_.write("f.toml", text);
    arguments.push_back("--config");
    arguments.push_back(file);
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app_.parse(reversed);
  }

  std::string usage_error_of(const std::string& text, const std::vector<std::string>& arguments) {
    try {
      parse(text, arguments);
    } catch (const UsageError& error) {
      EXPECT_EQ(std::string(error.what()).rfind(folder_.path() / "f.toml", 0), 0U) << error.what();
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder_;
  CLI::App app_;
  std::string model_;
  int max_tokens_ = 7;
  double temperature_ = 1;
  std::vector<std::string> stop_;
  std::vector<std::string> bias_;
  bool stream_ = false;
  int count_ = 0;
  std::string file_;
  int depth_ = 0;
  int runs_ = 0;
};

TEST_F(Configuration, GivesTheOptionsOfTheCommandThatRuns) {
  parse("model = 'm'\nmax-tokens = 12\ntemperature = 0.25\nstop = ['a', \"b c\"]\nstream = true\n", {"make"});
  EXPECT_EQ(model_, "m");
  EXPECT_EQ(max_tokens_, 12);
  EXPECT_EQ(temperature_, 0.25);
  EXPECT_EQ(stop_, (std::vector<std::string>{"a", "b c"}));
  EXPECT_TRUE(stream_);
  EXPECT_EQ(runs_, 1);
}

TEST_F(Configuration, CommandLineWinsWhereverItStands) {
  const auto file = folder_.write("f.toml", "model = 'file'\nmax-tokens = 12\nstop = ['x']\nstream = true\n");
  // CLI11 takes its arguments last first.
  app_.parse({"5", "--max-tokens", "--no-stream", file, "--config", "line", "--model", "make"});
  EXPECT_EQ(model_, "line");
  EXPECT_EQ(max_tokens_, 5);
  EXPECT_FALSE(stream_);
  EXPECT_EQ(stop_, std::vector<std::string>{"x"});
}

TEST_F(Configuration, AListGivesARepeatedOption) {
  parse("model = 'm'\nbias = ['a', 'b']\nstop = 'x'", {"make"});
  EXPECT_EQ(bias_, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(stop_, std::vector<std::string>{"x"});
}

TEST_F(Configuration, SwitchesAFlagOff) {
  parse("model = 'm'\nstream = false", {"make"});
  EXPECT_FALSE(stream_);
}

TEST_F(Configuration, ReachesNestedCommands) {
  parse("depth = 3", {"look", "deep"});
  EXPECT_EQ(depth_, 3);
}

TEST_F(Configuration, MayStandBeforeTheCommand) {
  app_.parse({"deep", "look", folder_.write("f.toml", "depth = 4"), "--config"});
  EXPECT_EQ(depth_, 4);
}

TEST_F(Configuration, RefusesKeysThatAreNoOptionOfTheCommand) {
  for (const char* key :
       {"depth", "Max-Tokens", "max_tokens", "n", "FILE", "config", "help", "make", "--model"}) {
    const std::string error = usage_error_of("model = 'm'\n'" + std::string(key) + "' = 1", {"make"});
    EXPECT_NE(error.find("f.toml:2: \"" + std::string(key) + "\" is not an option of `make`"),
              std::string::npos)
        << key << ": " << error;
  }
  EXPECT_EQ(runs_, 0);
}

TEST_F(Configuration, RefusesValuesOfTheWrongKind) {
  EXPECT_NE(usage_error_of("model = true", {"make"}).find("\"model\" takes text or a number"),
            std::string::npos);
  EXPECT_NE(usage_error_of("stream = 1", {"make"}).find("\"stream\" takes true or false"), std::string::npos);
  EXPECT_NE(usage_error_of("stream = [true]", {"make"}).find("\"stream\" takes true or false"),
            std::string::npos);
  EXPECT_NE(usage_error_of("max-tokens = [1]", {"make"}).find("\"max-tokens\" takes one value"),
            std::string::npos);
}

TEST_F(Configuration, ChecksValuesAsTheCommandLineDoes) {
  EXPECT_THROW(parse("model = 'm'\nmax-tokens = 101", {"make"}), CLI::ValidationError);
  EXPECT_THROW(parse("model = 'm'\nmax-tokens = 1.5", {"make"}), CLI::ParseError);
}

TEST_F(Configuration, RequiredOptionsMayComeFromTheFileOnly) {
  EXPECT_THROW(parse("max-tokens = 1", {"make"}), CLI::RequiredError);
}

TEST_F(Configuration, RefusesASecondFileAndAMissingOne) {
  const std::string file = folder_.write("f.toml", "");
  EXPECT_THROW(app_.parse({file, "--config", file, "--config", "deep", "look"}), UsageError);
  EXPECT_THROW(app_.parse({file + "x", "--config", "deep", "look"}), CLI::FileError);
}

}  // namespace
}  // namespace thalweg::app
