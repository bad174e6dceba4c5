// Help texts that fit the terminal they are shown on.
#pragma once

#include <CLI/CLI.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace thalweg::app {

/// Columns of the terminal behind standard output, held between 30 and 110; 80 if it is no terminal.
std::size_t terminal_columns();

/// `text` broken at blanks into lines of at most `columns` bytes (a longer word stays whole); every line but
/// the first is indented by `indent` blanks. `columns` includes the indent; the first line is taken to start
/// behind it.
std::string wrap(std::string_view text, std::size_t columns, std::size_t indent);

/// Sets how `app` and all commands added to it later lay out their help: two columns on a wide terminal, the
/// description below the option on a narrow one.
void set_help_layout(CLI::App& app);

}  // namespace thalweg::app
