// `--config FILE`: options of a command from a file.
#pragma once

#include <CLI/CLI.hpp>

namespace thalweg::app {

/// Gives every command of `app` that runs something (each leaf of the tree) the option `--config FILE`. Call
/// it once all commands are declared.
///
/// The file is TOML with plain keys, each the long name of an option of the command that runs (`max-tokens =
/// 64`, `stream = true`); a list gives a repeated option. What stands on the command line wins over the file.
/// A key that is no option of the command, or a value of the wrong kind, is a UsageError naming file, line
/// and key.
void add_configuration(CLI::App& app);

}  // namespace thalweg::app
