// `thalweg bench grammar`: what structured outputs cost, for a tokenizer.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "app/commands.hpp"
#include "app/model_option.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "bench/grammar_bench.hpp"
#include "text/special_tokens.hpp"

namespace thalweg::app {
namespace {

struct Options {
  std::string model;
  std::string tokenizer;
  int walks = 20;
  int tokens = 100;
  bool json = false;
};

void run(const Options& options) {
  const std::filesystem::path file = options.tokenizer.empty()
                                         ? model_directory(options.model) / "tokenizer.json"
                                         : std::filesystem::path(options.tokenizer);
  const text::Tokenizer tokenizer = text::Tokenizer::load(file);
  const auto figures = bench::run_grammar_bench(tokenizer, text::find_special_tokens(tokenizer).eos,
                                                options.walks, options.tokens);
  if (!options.json) {
    fmt::print("{:<18}{:>12}{:>12}{:>9}{:>10}{:>10}{:>11}{:>13}\n", "grammar", "compile ms", "KiB", "tokens",
               "mask us", "worst us", "accept us", "rollback us");
  }
  for (const bench::GrammarFigures& f : figures) {
    if (options.json) {
      const Json line = {{"grammar", f.name},           {"vocabulary", tokenizer.vocab_size()},
                         {"compile_ms", f.compile_ms},  {"bytes", f.bytes},
                         {"tokens", f.tokens},          {"mask_us", f.mask_us},
                         {"worst_us", f.worst_us},      {"accept_us", f.accept_us},
                         {"rollback_us", f.rollback_us}};
      fmt::print("{}\n", to_text(line));
    } else {
      fmt::print("{:<18}{:>12.1f}{:>12}{:>9}{:>10.1f}{:>10.1f}{:>11.1f}{:>13.1f}\n", f.name, f.compile_ms,
                 f.bytes / 1024, f.tokens, f.mask_us, f.worst_us, f.accept_us, f.rollback_us);
    }
  }
  if (std::fflush(stdout) != 0) throw WorkError("standard output: write failed");
}

}  // namespace

void add_bench_grammar(CLI::App& bench) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      bench.add_subcommand("grammar", "Compile times of grammars, and what a mask costs a token; one thread");
  add_model_option(*command, options->model);
  command->add_option("--tokenizer", options->tokenizer, "A tokenizer.json, instead of the model's")
      ->type_name("FILE");
  command->add_option("--walks", options->walks, "Random outputs of each grammar")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command->add_option("--tokens", options->tokens, "Tokens of an output at most")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command->add_flag("--json", options->json, "JSON lines");
  command->callback([options] { run(*options); });
}

}  // namespace thalweg::app
