// `thalweg inspect render`: what a request becomes before the engine sees it.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <string>

#include "app/commands.hpp"
#include "app/model_option.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "text/special_tokens.hpp"
#include "text/tokenizer.hpp"
#include "wire/fields.hpp"
#include "wire/read_request.hpp"

namespace thalweg::app {
namespace {

struct Options {
  std::string model;
  std::string tokenizer;
};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string bytes_from_hex(const std::string& hex, const std::string& subject) {
  if (hex.size() % 2 != 0)
    throw InputError(subject, "an even number of hex digits", fmt::format("{}", hex.size()));
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const int high = hex_digit(hex[i]);
    const int low = hex_digit(hex[i + 1]);
    if (high < 0 || low < 0) throw InputError(subject, "hex digits", fmt::format("\"{}\"", hex.substr(i, 2)));
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

const std::string& text_member(const Json& line, const char* name, const std::string& subject) {
  const auto found = line.find(name);
  if (found == line.end()) throw InputError(subject, fmt::format("member \"{}\"", name), "none");
  if (!found->is_string()) throw InputError(subject + "." + name, "a string", found->type_name());
  return found->get_ref<const std::string&>();
}

// The request stands in the line as JSON, or as the exact text or bytes of a body.
Json body_of(const Json& line, const std::string& subject) {
  if (line.contains("body")) return wire::parse_body(text_member(line, "body", subject));
  if (line.contains("body_hex")) {
    return wire::parse_body(bytes_from_hex(text_member(line, "body_hex", subject), subject + ".body_hex"));
  }
  if (!line.contains("request"))
    throw InputError(subject, "one of \"request\", \"body\" and \"body_hex\"", "none");
  return line["request"];
}

Json answer(const Json& line, const text::Tokenizer& tokenizer, const text::SpecialTokens& specials,
            const std::string& subject) {
  if (!line.is_object()) throw InputError(subject, "an object", line.type_name());
  const std::string& name = text_member(line, "api", subject);
  const auto api = wire::api_from_string(name);
  if (!api) throw InputError(subject + ".api", "chat, responses or messages", fmt::format("\"{}\"", name));
  try {
    return wire::describe(wire::read_request(*api, body_of(line, subject), wire::Policy{}), tokenizer,
                          specials);
  } catch (const wire::RequestError& error) {
    Json object = wire::error_object(error);
    // The public service leaves it empty; so whole lines can be compared.
    object["param"] = nullptr;
    return Json{{"status", error.status()}, {"error", std::move(object)}};
  }
}

void run(const Options& options) {
  const auto file = options.tokenizer.empty() ? model_directory(options.model) / "tokenizer.json"
                                              : std::filesystem::path(options.tokenizer);
  const auto tokenizer = text::Tokenizer::load(file);
  const auto specials = text::find_special_tokens(tokenizer);
  std::string line;
  for (std::size_t number = 1; std::getline(std::cin, line); ++number) {
    const std::string subject = fmt::format("line {}", number);
    // One level more than a request may have.
    const Json json = parse_json(line, subject, {.depth = JsonLimits{}.depth + 1});
    std::cout << to_text(answer(json, tokenizer, specials, subject)) << std::endl;
  }
  if (!std::cout) throw WorkError("standard output: write failed");
}

}  // namespace

void add_inspect_render(CLI::App& inspect) {
  CLI::App* command = inspect.add_subcommand(
      "render",
      "Render requests: JSON lines {\"api\", \"request\" or \"body\" or \"body_hex\"} in, prompt, ids and "
      "settings or {\"status\", \"error\"} out");
  auto options = std::make_shared<Options>();
  CLI::Option* model = add_model_option(*command, options->model);
  command->add_option("--tokenizer", options->tokenizer, "tokenizer.json to use instead of the checkpoint's")
      ->type_name("FILE")
      ->excludes(model);
  command->add_flag("--json")->description("Changes nothing: the output is always JSON lines");
  command->callback([options] { run(*options); });
}

}  // namespace thalweg::app
