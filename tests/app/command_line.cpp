#include "app/command_line.hpp"

#include <CLI/CLI.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "app/commands.hpp"
#include "support/program.hpp"

namespace thalweg::app {
namespace {

using Arguments = std::vector<std::string>;

/// Every command of the program as its arguments; {} is the program itself.
void collect(const CLI::App& app, const Arguments& path, std::vector<Arguments>& found) {
  found.push_back(path);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    Arguments longer = path;
    longer.push_back(command->get_name());
    collect(*command, longer, found);
  }
}

std::vector<Arguments> every_command() {
  CLI::App app;
  add_commands(app);
  std::vector<Arguments> found;
  collect(app, {}, found);
  return found;
}

Arguments operator+(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::string spelled(const Arguments& arguments) {
  return testing::PrintToString(arguments);
}

/// Exit code 2, nothing on stdout, and one line on stderr that holds `named`.
void expect_usage_error(const Arguments& arguments, const std::string& named) {
  const ProgramResult result = run_program(arguments);
  EXPECT_EQ(result.exit_code, 2) << spelled(arguments) << result.messages;
  EXPECT_EQ(result.output, "") << spelled(arguments);
  EXPECT_EQ(std::count(result.messages.begin(), result.messages.end(), '\n'), 1) << result.messages;
  EXPECT_EQ(result.messages.rfind("thalweg: ", 0), 0U) << result.messages;
  EXPECT_NE(result.messages.find(named), std::string::npos) << spelled(arguments) << result.messages;
}

TEST(CommandLine, EveryCommandHasHelpThatNamesItself) {
  for (const Arguments& command : every_command()) {
    for (const char* option : {"--help", "-h"}) {
      const ProgramResult result = run_program(command + Arguments{option});
      EXPECT_EQ(result.exit_code, 0) << spelled(command);
      EXPECT_EQ(result.messages, "") << spelled(command);
      std::string usage = "Usage: thalweg";
      for (const std::string& word : command) usage += " " + word;
      EXPECT_NE(result.output.find(usage), std::string::npos) << result.output;
      EXPECT_NE(result.output.find("--help"), std::string::npos) << result.output;
    }
  }
}

TEST(CommandLine, EveryCommandThatRunsTakesAConfigurationFile) {
  CLI::App app;
  add_commands(app);
  for (const Arguments& command : every_command()) {
    const CLI::App* at = &app;
    for (const std::string& word : command) at = at->get_subcommand(word);
    if (!at->get_subcommands([](const CLI::App*) { return true; }).empty()) continue;
    EXPECT_NE(at->get_option_no_throw("--config"), nullptr) << spelled(command);
  }
}

TEST(CommandLine, HelpFitsEightyColumnsElsewhereThanOnATerminal) {
  for (const Arguments& command : every_command()) {
    std::istringstream lines(run_program(command + Arguments{"--help"}).output);
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(line.size(), 80U) << spelled(command) << line;
  }
}

/// Standard output of the program on a terminal of `columns`.
std::string on_terminal(const Arguments& arguments, unsigned short columns) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  EXPECT_GE(terminal, 0);
  EXPECT_EQ(::grantpt(terminal), 0);
  EXPECT_EQ(::unlockpt(terminal), 0);
  const std::string device = ::ptsname(terminal);
  const int hold =
      ::open(device.c_str(), O_RDWR | O_NOCTTY);  // so that the output stays there once the program ended
  const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  EXPECT_EQ(::ioctl(terminal, TIOCSWINSZ, &size), 0);
  EXPECT_EQ(run_program(arguments, "", device).exit_code, 0);
  std::string text;
  ::fcntl(terminal, F_SETFL, O_NONBLOCK);
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(terminal, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(hold);
  ::close(terminal);
  text.erase(std::remove(text.begin(), text.end(), '\r'), text.end());
  return text;
}

TEST(CommandLine, HelpFitsANarrowTerminal) {
  const int probe = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (probe < 0) GTEST_SKIP() << "this system has no pseudo-terminals (/dev/pts)";
  ::close(probe);
  for (const Arguments& command : every_command()) {
    for (const unsigned short columns : {40, 60, 100}) {
      const std::string help = on_terminal(command + Arguments{"--help"}, columns);
      EXPECT_NE(help.find("Usage:"), std::string::npos) << spelled(command);
      std::istringstream lines(help);
      for (std::string line; std::getline(lines, line);) {
        // Only a single word that is longer than the line may stand out.
        const auto text = line.find_first_not_of(' ');
        if (text != std::string::npos && line.find(' ', text) == std::string::npos) continue;
        EXPECT_LE(line.size(), columns) << spelled(command) << line;
      }
    }
  }
}

TEST(CommandLine, VersionIsOneLine) {
  const ProgramResult result = run_program({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output, "thalweg 0.1.0\n");
}

TEST(CommandLine, NamesTheUnknownOptionInEveryCommand) {
  for (const Arguments& command : every_command()) {
    expect_usage_error(command + Arguments{"--no-such-option"}, "unknown option --no-such-option");
    expect_usage_error(command + Arguments{"--no-such-option=5"}, "unknown option --no-such-option ");
    expect_usage_error(command + Arguments{"-Z"}, "unknown option -Z");
  }
}

TEST(CommandLine, NamesTheUnknownCommand) {
  expect_usage_error({"gnerate"}, "unknown command \"gnerate\"");
  expect_usage_error({"inspect", "nothing"}, "unknown command \"nothing\"");
  expect_usage_error({"doctor", "extra"}, "unexpected argument \"extra\"");
  expect_usage_error({"doctor", "inspect"}, "\"inspect\"");
}

TEST(CommandLine, AsksForACommandAndListsThem) {
  expect_usage_error({}, "doctor, ");
  expect_usage_error({"inspect"}, "expected one of the commands");
}

TEST(CommandLine, NamesTheOptionWhoseValueIsMissing) {
  expect_usage_error({"doctor", "--model"}, "--model");
  expect_usage_error({"doctor", "--config"}, "--config");
  expect_usage_error({"--config"}, "--config");
}

TEST(CommandLine, NamesTheOptionThatIsGivenTwice) {
  expect_usage_error({"doctor", "--model", "a", "--model", "b"}, "--model");
}

TEST(CommandLine, NamesTheConfigurationFileThatIsMissingOrWrong) {
  const TemporaryFolder folder;
  expect_usage_error({"doctor", "--config", folder.path() / "none.toml"}, "none.toml");
  expect_usage_error({"doctor", "--config", folder.path()}, "--config");
  expect_usage_error({"doctor", "--config", folder.write("a.toml", "json = true\nmodle = 'x'\n")},
                     "a.toml:2: \"modle\" is not an option of `doctor`");
  expect_usage_error({"doctor", "--config", folder.write("b.toml", "json = maybe\n")}, "b.toml:1: ");
}

TEST(CommandLine, ControlCharactersDoNotBreakTheLine) {
  expect_usage_error({"doctor", "--a\nb"}, "unknown option --a b");
  EXPECT_EQ(one_line("a\nb\x1b[31m\tc\x7f"), "a b [31m c ");
}

TEST(CommandLine, WrongInputExitsThreeAndNamesIt) {
  const ProgramResult result = run_program({"doctor", "--model", "/no/such/folder"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.output, "");
  EXPECT_EQ(result.messages, "thalweg: /no/such/folder: expected a checkpoint directory\n");
}

TEST(CommandLine, LostOutputIsAFailure) {
  for (const Arguments& arguments :
       {Arguments{"--help"}, Arguments{"--version"}, Arguments{"doctor", "--json"}}) {
    const ProgramResult result = run_program(arguments, "", "/dev/full");
    EXPECT_EQ(result.exit_code, 1) << spelled(arguments);
    EXPECT_EQ(result.messages, "thalweg: standard output: cannot write\n") << spelled(arguments);
  }
}

}  // namespace
}  // namespace thalweg::app
