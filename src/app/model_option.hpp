// `--model DIR`, the same for every command that reads a checkpoint.
#pragma once

#include <CLI/CLI.hpp>

#include <filesystem>
#include <optional>
#include <string>

namespace thalweg::app {

/// The bundled checkpoint: models/mini (or share/thalweg/models/mini) in the nearest folder above the program
/// that has it, if there is one.
std::optional<std::filesystem::path> bundled_model();

/// Adds `--model DIR` to `command`. `directory` stays empty where the option is not given; the callback of
/// the command passes it to `model_directory`.
CLI::Option* add_model_option(CLI::App& command, std::string& directory);

/// `given`, or the bundled checkpoint if it is empty. Throws UsageError naming --model if that is not there.
std::filesystem::path model_directory(const std::string& given);

}  // namespace thalweg::app
