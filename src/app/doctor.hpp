// `thalweg doctor`: what this machine can do, and what is missing for which feature.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/accelerators.hpp"
#include "app/machine.hpp"
#include "base/json.hpp"

namespace thalweg::app {

/// A checkpoint directory as doctor sees it; it reads no weights.
struct ModelDirectory {
  std::filesystem::path path;
  std::uint64_t weight_bytes = 0;  ///< sum of the sizes of *.safetensors
  std::uint64_t free_bytes = 0;    ///< left on the file system
  std::optional<DiskSpeed> disk;   ///< measured; nothing if there was no file to read
};

/// Everything doctor found out. Only what was looked at is in here.
struct Diagnosis {
  Processor processor;
  Memory memory;
  std::uint64_t open_files = 0;  ///< limit of this process
  GpuSystem gpu;
  std::optional<std::string> nccl;
  std::optional<std::string> mpi;
  std::optional<std::string> ucx;
  std::vector<std::string> rdma;
  std::optional<ModelDirectory> model;
};

/// Whether a part of Thalweg can be used here.
struct Feature {
  std::string name;
  bool in_build = false;             ///< this program contains it
  std::vector<std::string> missing;  ///< what the machine lacks for it, in words
};

/// Looks at the machine and at `model` (none: no checkpoint is looked at). Throws InputError if it is no
/// directory.
Diagnosis examine_machine(const std::optional<std::filesystem::path>& model);

/// What follows from the facts for each part of Thalweg.
std::vector<Feature> judge_features(const Diagnosis& diagnosis);

/// The document that `--json` prints.
Json to_json(const Diagnosis& diagnosis);

/// The table for people, each line ended.
std::string to_table(const Diagnosis& diagnosis);

void add_doctor(CLI::App& app);

}  // namespace thalweg::app
