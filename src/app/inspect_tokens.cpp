// `thalweg inspect tokens`: the tokenizer and the detokeniser, fed from standard input.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/commands.hpp"
#include "app/model_option.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "text/detokenizer.hpp"
#include "text/tokenizer.hpp"

namespace thalweg::app {
namespace {

namespace fs = std::filesystem;
using text::TokenId;
using text::Tokenizer;

struct Options {
  std::string model;
  std::string tokenizer;
};

void check_members(const Json& line, std::initializer_list<std::string_view> known,
                   const std::string& subject) {
  for (const auto& [name, unused] : line.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw InputError(fmt::format("{}: {}", subject, name), "unknown member");
    }
  }
}

Json encode_line(const Tokenizer& tokenizer, const Json& line, const std::string& subject) {
  check_members(line, {"text", "specials"}, subject);
  const Json& given = line["text"];
  if (!given.is_string()) throw InputError(subject + ": text", "a string", to_text(given));
  const Json specials = line.value("specials", Json("parse"));
  if (specials != "parse" && specials != "plain") {
    throw InputError(subject + ": specials", "\"parse\" or \"plain\"", to_text(specials));
  }
  const auto& text = given.get_ref<const std::string&>();
  return {{"ids", specials == "plain" ? tokenizer.encode_plain(text) : tokenizer.encode(text)}};
}

/// Any integer is an id: those that do not fit the type are outside every vocabulary, as -1 is.
std::vector<TokenId> read_ids(const Json& ids, const std::string& subject) {
  if (!ids.is_array()) throw InputError(subject, "an array of integers", to_text(ids));
  std::vector<TokenId> read;
  for (const Json& id : ids) {
    if (!id.is_number_integer()) {
      throw InputError(fmt::format("{}[{}]", subject, read.size()), "an integer", to_text(id));
    }
    const bool negative = !id.is_number_unsigned();  // integers are read as unsigned unless they have a sign
    const bool fits = !negative && id.get<std::uint64_t>() <= std::numeric_limits<TokenId>::max();
    read.push_back(fits ? id.get<TokenId>() : -1);
  }
  return read;
}

Json decode_line(const Tokenizer& tokenizer, const Json& line, const std::string& subject) {
  check_members(line, {"ids", "stream"}, subject);
  const Json stream = line.value("stream", Json(false));
  if (!stream.is_boolean()) throw InputError(subject + ": stream", "a boolean", to_text(stream));
  const std::vector<TokenId> ids = read_ids(line["ids"], subject + ": ids");
  if (!stream.get<bool>()) return {{"text", tokenizer.decode(ids)}};
  text::Detokenizer detokenizer(tokenizer);
  Json pieces = Json::array();
  for (const TokenId id : ids) pieces.push_back(detokenizer.push(id));
  return {{"pieces", std::move(pieces)}};
}

Json answer(const Tokenizer& tokenizer, const Json& line, const std::string& subject) {
  if (!line.is_object()) throw InputError(subject, "an object", to_text(line));
  if (line.contains("text") == line.contains("ids")) {
    throw InputError(subject, "either \"text\" or \"ids\"", line.contains("ids") ? "both" : "neither");
  }
  return line.contains("text") ? encode_line(tokenizer, line, subject)
                               : decode_line(tokenizer, line, subject);
}

void run(const Options& options) {
  const fs::path file = options.tokenizer.empty() ? model_directory(options.model) / "tokenizer.json"
                                                  : fs::path(options.tokenizer);
  const Tokenizer tokenizer = Tokenizer::load(file);
  std::string line;
  for (std::size_t number = 1; std::getline(std::cin, line); ++number) {
    const std::string subject = fmt::format("line {}", number);
    const Json request = parse_json(line, subject, {.unique_keys = true});
    std::cout << to_text(answer(tokenizer, request, subject)) << std::endl;
  }
  if (!std::cout) throw WorkError("standard output: write failed");
}

}  // namespace

void add_inspect_tokens(CLI::App& inspect) {
  CLI::App* command = inspect.add_subcommand(
      "tokens",
      "Tokenize and detokenize: JSON lines {\"text\", \"specials\": \"parse\" (default) or \"plain\"} in, "
      "{\"ids\"} "
      "out; {\"ids\"} in, {\"text\"} out; {\"ids\", \"stream\": true} in, {\"pieces\"} out");
  auto options = std::make_shared<Options>();
  CLI::Option* model = add_model_option(*command, options->model);
  command->add_option("--tokenizer", options->tokenizer, "tokenizer.json to use instead of the checkpoint's")
      ->type_name("FILE")
      ->excludes(model);
  command->add_flag("--json")->description("Changes nothing: the output is always JSON lines");
  command->callback([options] { run(*options); });
}

}  // namespace thalweg::app
