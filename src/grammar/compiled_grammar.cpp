#include "grammar/compiled_grammar.hpp"

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>
#include <utility>

#include "base/error.hpp"
#include "grammar/compiled_rules.hpp"
#include "grammar/limits.hpp"
#include "grammar/xgrammar_hooks.hpp"

namespace thalweg::grammar {
namespace {

constexpr std::size_t kWordBits = 32;

}  // namespace

struct Matcher::State {
  xgrammar::GrammarMatcher matcher;
};

std::size_t CompiledGrammar::size() const {
  return rules_->compiled.MemorySizeBytes();
}

Matcher::Matcher(std::shared_ptr<const CompiledGrammar> grammar)
    : grammar_(std::move(grammar)),
      state_(std::make_unique<State>(State{xgrammar::GrammarMatcher(grammar_->rules_->compiled)})) {}
Matcher::~Matcher() = default;
Matcher::Matcher(const Matcher& other)
    : grammar_(other.grammar_),
      state_(std::make_unique<State>(State{other.state_->matcher.Fork()})),
      steps_(other.steps_) {}
Matcher& Matcher::operator=(const Matcher& other) {
  return *this = Matcher(other);
}
Matcher::Matcher(Matcher&&) noexcept = default;
Matcher& Matcher::operator=(Matcher&&) noexcept = default;

std::size_t Matcher::mask_words() const {
  return (static_cast<std::size_t>(grammar_->rules_->vocab_size) + kWordBits - 1) / kWordBits;
}

// Whether the grammar is to begin with the token after this one, or had begun without any.
bool Matcher::begins(std::int32_t token) const {
  const CompiledGrammar::Start& start = grammar_->start_;
  if (start.after_token) return token == *start.after_token;
  return start.markup && token == *start.markup && !steps_.empty() && steps_.back() == Step::open;
}

bool Matcher::fill_mask(std::span<std::uint32_t> mask) {
  const CompiledGrammar::Start& start = grammar_->start_;
  const bool waits = start.after_token || start.markup;
  const bool free = steps_.empty() ? waits : steps_.back() == Step::free || steps_.back() == Step::open;
  if (free || (!steps_.empty() && (steps_.back() == Step::end || steps_.back() == Step::after))) return false;
  if (mask.size() != mask_words()) throw std::invalid_argument("the mask has the wrong length");
  std::int64_t shape = static_cast<std::int64_t>(mask.size());
  DLTensor tensor{};
  tensor.data = mask.data();
  tensor.device = {kDLCPU, 0};
  tensor.ndim = 1;
  tensor.dtype = xgrammar::GetBitmaskDLType();
  tensor.shape = &shape;
  CompileWatch watch{computed_time() + GrammarLimits::mask_time, 0, {}};
  const Watched watched(watch);
  try {
    return state_->matcher.FillNextTokenBitmask(&tensor);
  } catch (const CompileTimeout&) {
    throw WorkError(
        fmt::format("grammar: expected the mask of a token within {} ms, found that it takes longer",
                    GrammarLimits::mask_time.count()));
  }
}

bool Matcher::accept(std::int32_t token) {
  const CompiledGrammar::Rules& rules = *grammar_->rules_;
  const CompiledGrammar::Start& start = grammar_->start_;
  const bool waits = start.after_token || start.markup;
  const bool free = steps_.empty() ? waits : steps_.back() == Step::free || steps_.back() == Step::open;
  const bool over = !steps_.empty() && (steps_.back() == Step::end || steps_.back() == Step::after);
  Step step = Step::matched;
  if (over) {
    step = Step::after;
  } else if (free) {
    step = Step::free;
    if (begins(token)) {
      step = Step::start;
    } else if (token == rules.eos_token) {
      step = Step::after;
    } else if (rules.tokenizer->token_bytes(token).ends_with('<')) {
      step = Step::open;
    }
  } else {
    if (!state_->matcher.AcceptToken(token)) return false;
    if (token == rules.eos_token) step = Step::end;
  }
  steps_.push_back(step);
  return true;
}

void Matcher::rollback(std::size_t count) {
  if (count > steps_.size()) throw std::out_of_range("fewer tokens were accepted");
  int matched = 0;
  for (; count > 0; --count) {
    matched += steps_.back() == Step::matched || steps_.back() == Step::end ? 1 : 0;
    steps_.pop_back();
  }
  if (matched > 0) state_->matcher.Rollback(matched);
}

bool Matcher::finished() const {
  const CompiledGrammar::Start& start = grammar_->start_;
  const bool waits = start.after_token || start.markup;
  const bool free = steps_.empty() ? waits : steps_.back() == Step::free || steps_.back() == Step::open;
  if (free) return true;
  if (!steps_.empty() && (steps_.back() == Step::end || steps_.back() == Step::after)) return true;
  return state_->matcher.IsCompleted();
}

}  // namespace thalweg::grammar
