#include "app/command_line.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <vector>

#include "app/commands.hpp"
#include "base/error.hpp"

namespace thalweg::app {
namespace {

int report(std::string_view message, Fault fault) {
  std::fprintf(stderr, "thalweg: %s\n", one_line(message).c_str());
  return static_cast<int>(fault);
}

/// The command that the arguments chose before parsing stopped, and its name as typed ("thalweg inspect
/// tokens").
std::pair<const CLI::App*, std::string> chosen_command(const CLI::App& app) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  for (auto chosen = command->get_subcommands(); !chosen.empty(); chosen = command->get_subcommands()) {
    command = chosen.front();
    name += " " + command->get_name();
  }
  return {command, name};
}

/// CLI11's wording leaves out the argument in some cases and the way to the help in all.
std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const auto [command, name] = chosen_command(app);
  const auto subcommands = command->get_subcommands([](const CLI::App*) { return true; });
  const std::string hint = fmt::format(" (see `{} --help`)", name);
  // Arguments that no command took; a missing command or option is often only a consequence of them.
  if (const std::vector<std::string> unknown = app.remaining(true); !unknown.empty()) {
    const std::string& first = unknown.front();
    if (first.size() > 1 && first.front() == '-') {
      return fmt::format("unknown option {}{}", first.substr(0, first.find('=')), hint);
    }
    return fmt::format("{} \"{}\"{}", subcommands.empty() ? "unexpected argument" : "unknown command", first,
                       hint);
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !subcommands.empty()) {
    std::string names;
    for (const CLI::App* subcommand : subcommands)
      names += (names.empty() ? "" : ", ") + subcommand->get_name();
    return fmt::format("expected one of the commands {}{}", names, hint);
  }
  if (dynamic_cast<const CLI::FileError*>(&error) != nullptr)
    return fmt::format("--config: {}", error.what());
  return error.what() + hint;
}

/// Output that was lost (a full disk, a closed pipe) must not look like success.
int finish_output() {
  std::cout.flush();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout) {
    return report("standard output: cannot write", Fault::work);
  }
  return 0;
}

}  // namespace

std::string one_line(std::string_view message) {
  std::string line(message);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return line;
}

int run_command_line(int argc, char** argv) {
  CLI::App app;
  try {
    add_commands(app);
    app.parse(argc, argv);
    return finish_output();
  } catch (const CLI::CallForHelp& e) {
    app.exit(e);
    return finish_output();
  } catch (const CLI::CallForVersion& e) {
    app.exit(e);
    return finish_output();
  } catch (const CLI::ParseError& e) {
    return report(explain(app, e), Fault::usage);
  } catch (const Error& e) {
    return report(e.what(), e.fault());
  } catch (const std::bad_alloc&) {
    return report("out of memory", Fault::work);
  } catch (const std::exception& e) {
    return report(e.what(), Fault::work);
  }
}

}  // namespace thalweg::app
