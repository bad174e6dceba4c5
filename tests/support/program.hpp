// Runs the `thalweg` program as a user does: arguments in; output, messages and exit code out.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support/temporary_folder.hpp"

namespace thalweg {

struct ProgramResult {
  int exit_code = 0;  ///< 128 + the signal if one ended it
  std::string output;
  std::string messages;  ///< what it wrote to stderr
};

/// Runs THALWEG_BINARY with `arguments`, `input` as standard input and, if given, standard output sent to the
/// file `output`.
inline ProgramResult run_program(const std::vector<std::string>& arguments, std::string_view input = "",
                                 const std::string& output = "") {
  const TemporaryFolder folder;
  const std::string in = folder.write("in", input);
  const std::string out = output.empty() ? (folder.path() / "out").string() : output;
  const std::string err = folder.path() / "err";
  std::vector<char*> argv{const_cast<char*>("thalweg")};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    const auto redirect = [](const std::string& file, int flags, int descriptor) {
      const int fd = ::open(file.c_str(), flags, 0600);
      if (fd < 0 || ::dup2(fd, descriptor) < 0) ::_exit(127);
    };
    redirect(in, O_RDONLY, STDIN_FILENO);
    redirect(out, O_WRONLY | O_CREAT, STDOUT_FILENO);
    redirect(err, O_WRONLY | O_CREAT, STDERR_FILENO);
    ::execv(THALWEG_BINARY, argv.data());
    ::_exit(127);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child) throw std::runtime_error("cannot wait for the program");
  const auto read = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  return {.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
          .output = output.empty() ? read(out) : "",
          .messages = read(err)};
}

}  // namespace thalweg
