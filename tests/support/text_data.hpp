// Test data of the text side: the released tokenizer and the JSON case files in tests/data/api.
#pragma once

#include <zstd.h>

#include <filesystem>
#include <map>
#include <string>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/mapped_file.hpp"
#include "text/tokenizer.hpp"

namespace thalweg::testing {

/// Path of a file in tests/data/api.
inline std::filesystem::path api_data(const std::string& name) {
  return std::filesystem::path(THALWEG_SOURCE_DIR) / "tests/data/api" / name;
}

/// A case file of tests/data/api, parsed; kept until the program ends.
inline const Json& api_cases(const std::string& name) {
  static std::map<std::string, Json> files;
  const auto known = files.find(name);
  if (known != files.end()) return known->second;
  return files.emplace(name, parse_json(read_text_file(api_data(name)), name)).first->second;
}

/// The content of a file that is one zstd frame of known size.
inline std::string decompress_zstd(const std::filesystem::path& path) {
  const std::string packed = read_text_file(path);
  const auto size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) {
    throw InputError(path.string(), "not a zstd frame of known size");
  }
  std::string content(size, '\0');
  if (ZSTD_decompress(content.data(), content.size(), packed.data(), packed.size()) != size) {
    throw InputError(path.string(), "damaged zstd frame");
  }
  return content;
}

/// The tokenizer.json of the DeepSeek-V4.1-Flash checkpoint, byte for byte.
inline const std::string& released_tokenizer_json() {
  static const std::string json = decompress_zstd(api_data("tokenizer_v41.json.zst"));
  return json;
}

/// The tokenizer of the DeepSeek-V4.1-Flash checkpoint, read once for a test program.
inline const text::Tokenizer& released_tokenizer() {
  static const text::Tokenizer tokenizer =
      text::Tokenizer::parse(released_tokenizer_json(), "tokenizer_v41.json");
  return tokenizer;
}

}  // namespace thalweg::testing
