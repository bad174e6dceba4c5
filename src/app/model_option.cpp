#include "app/model_option.hpp"

#include <system_error>

#include "base/error.hpp"

namespace thalweg::app {

namespace fs = std::filesystem;

std::optional<fs::path> bundled_model() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  for (fs::path folder = program.parent_path(); !folder.empty(); folder = folder.parent_path()) {
    for (const char* place : {"models/mini", "share/thalweg/models/mini"}) {
      if (fs::exists(folder / place / "config.json", ignored)) return folder / place;
    }
    if (folder == folder.root_path()) break;
  }
  return std::nullopt;
}

CLI::Option* add_model_option(CLI::App& command, std::string& directory) {
  return command.add_option("--model", directory, "Checkpoint directory (default: the bundled models/mini)")
      ->type_name("DIR");
}

fs::path model_directory(const std::string& given) {
  if (!given.empty()) return given;
  if (auto bundled = bundled_model()) return *bundled;
  throw UsageError("--model: must be given, since no folder above the program holds the bundled models/mini");
}

}  // namespace thalweg::app
