#include "bench/grammar_bench.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <random>
#include <utility>

#include "grammar/compiler.hpp"

namespace thalweg::bench {
namespace {

using grammar::Constraint;
using Clock = std::chrono::steady_clock;
using Kind = Constraint::Kind;

constexpr int kDrafts = 5;

double microseconds(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

std::vector<std::pair<std::string, Constraint>> constraints() {
  Constraint tools{.kind = Kind::tool_calls, .calls_required = true};
  for (const char* name : {"get_weather", "search", "send_mail"}) tools.tools.push_back({name});
  return {
      {"json_object", {.kind = Kind::json_object}},
      {"json_schema", {.kind = Kind::json_schema, .text = R"({"type": "object", "additionalProperties": false,
              "required": ["name", "age", "tags"], "properties": {"name": {"type": "string"},
              "age": {"type": "integer", "minimum": 0, "maximum": 130},
              "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}}}})"}},
      {"regex, a date", {.kind = Kind::regex, .text = "[0-9]{4}-(0[1-9]|1[0-2])-[0-3][0-9]"}},
      {"regex, words", {.kind = Kind::regex, .text = "([A-Z][a-z]+ ){3,40}\\."}},
      {"ebnf, sums", {.kind = Kind::ebnf, .text = "root ::= t ([-+*/] t)*\nt ::= [0-9]+ | \"(\" root \")\""}},
      {"choice of 3", {.kind = Kind::choice, .choices = {"yes", "no", "perhaps"}}},
      {"calls of 3 tools", tools}};
}

/// Evenly one of the tokens that `mask` allows; -1: none.
std::int32_t draw(const std::vector<std::uint32_t>& mask, std::int32_t vocab_size, std::mt19937_64& random) {
  std::int64_t count = 0;
  for (const std::uint32_t word : mask) count += std::popcount(word);
  if (count == 0) return -1;
  auto left = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
  for (std::int32_t token = 0; token < vocab_size; ++token) {
    if ((mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1) != 0 && left-- == 0) return token;
  }
  return -1;
}

class Walk {
 public:
  Walk(const std::shared_ptr<const grammar::CompiledGrammar>& compiled, const text::Tokenizer& tokenizer,
       std::int32_t eos_token)
      : matcher_(compiled),
        mask_(matcher_.mask_words()),
        vocab_size_(tokenizer.vocab_size()),
        eos_token_(eos_token) {}

  void run(int tokens, std::mt19937_64& random, GrammarFigures& figures) {
    std::vector<std::int32_t> drawn;
    while (static_cast<int>(drawn.size()) < tokens) {
      auto begin = Clock::now();
      matcher_.fill_mask(mask_);
      const double mask = microseconds(begin);
      const std::int32_t token = draw(mask_, vocab_size_, random);
      if (token < 0 || token == eos_token_) break;
      figures.mask_us += mask;
      figures.worst_us = std::max(figures.worst_us, mask);
      begin = Clock::now();
      matcher_.accept(token);
      figures.accept_us += microseconds(begin);
      drawn.push_back(token);
      ++figures.tokens;
    }
    if (static_cast<int>(drawn.size()) < kDrafts) return;
    const auto begin = Clock::now();
    matcher_.rollback(kDrafts);
    for (std::size_t i = drawn.size() - kDrafts; i < drawn.size(); ++i) matcher_.accept(drawn[i]);
    figures.rollback_us += microseconds(begin);
    ++rollbacks;
  }

  int rollbacks = 0;

 private:
  grammar::Matcher matcher_;
  std::vector<std::uint32_t> mask_;
  std::int32_t vocab_size_;
  std::int32_t eos_token_;
};

}  // namespace

std::vector<GrammarFigures> run_grammar_bench(const text::Tokenizer& tokenizer, std::int32_t eos_token,
                                              int walks, int tokens) {
  grammar::Compiler compiler(tokenizer, tokenizer.vocab_size(), eos_token);
  compiler.compile({.kind = Kind::choice, .choices = {"x"}}).get();  // prepares the vocabulary
  std::vector<GrammarFigures> all;
  for (auto& [name, constraint] : constraints()) {
    GrammarFigures figures;
    figures.name = name;
    const auto begin = Clock::now();
    const auto compiled = compiler.compile(std::move(constraint)).get();
    figures.compile_ms = microseconds(begin) / 1000;
    figures.bytes = compiled->size();
    std::mt19937_64 random(1);
    int rollbacks = 0;
    for (int i = 0; i < walks; ++i) {
      Walk walk(compiled, tokenizer, eos_token);
      walk.run(tokens, random, figures);
      rollbacks += walk.rollbacks;
    }
    const auto taken = static_cast<double>(std::max<std::int64_t>(1, figures.tokens));
    figures.mask_us /= taken;
    figures.accept_us /= taken;
    figures.rollback_us /= std::max(1, rollbacks);
    all.push_back(std::move(figures));
  }
  return all;
}

}  // namespace thalweg::bench
