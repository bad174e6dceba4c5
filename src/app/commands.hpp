// The subcommands of `thalweg`. Each add_* declares one: its options and the callback that runs it. A callback throws
// thalweg::Error for whatever goes wrong; main turns that into a line on stderr and the exit code.
#pragma once

#include <CLI/CLI.hpp>

namespace thalweg::app {

/// Declares every command of the program on `app`.
void add_commands(CLI::App& app);

}  // namespace thalweg::app
