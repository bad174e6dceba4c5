// A checkpoint directory made ready: tokenizer and model together, checked against each other.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "checkpoint/checkpoint.hpp"
#include "model/model.hpp"
#include "text/special_tokens.hpp"
#include "text/tokenizer.hpp"

namespace thalweg::engine {

/// Immutable once loaded; thread-safe to read.
struct LoadedModel {
  std::filesystem::path directory;
  text::Tokenizer tokenizer;
  model::Model model;

  /// Names the checkpoint for caches: a hash of config, tokenizer and, of every weight file, its header, size
  /// and time of change.
  std::string digest() const;
};

/// Reads tokenizer.json and the checkpoint of `directory` and checks them. Throws InputError naming file and
/// field.
std::unique_ptr<LoadedModel> load_model(const std::filesystem::path& directory,
                                        const checkpoint::LoadOptions& options = {});

}  // namespace thalweg::engine
