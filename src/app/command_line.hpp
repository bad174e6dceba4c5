// The whole of `thalweg`: parses the command line, runs the command, and turns what went wrong into a line
// and a code.
#pragma once

#include <string>
#include <string_view>

namespace thalweg::app {

/// Runs the program and returns its exit code: 0 done, 1 the work failed, 2 the command line or the
/// configuration is wrong, 3 an input is wrong. Errors are one line on stderr.
int run_command_line(int argc, char** argv);

/// `message` as one line of text: control characters become blanks.
std::string one_line(std::string_view message);

}  // namespace thalweg::app
