// Quality of a checkpoint on texts and tasks, and what an approximate mode or precision changes of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "text/tokenizer.hpp"

namespace thalweg::bench {

/// A way to compute: a backend (of some precision), and the tokens that bounded replay keeps of a prompt.
struct Computation {
  backend::Backend* backend = nullptr;
  std::optional<std::int64_t> replay_keep;  ///< none: exact
};

/// Sums over predicted tokens of the natural logarithm of their probability, negated.
struct TextLoss {
  std::int64_t tokens = 0;
  std::int64_t bytes = 0;  ///< of the predicted tokens
  double loss = 0;
  double per_token() const { return tokens > 0 ? loss / static_cast<double>(tokens) : 0; }
  double perplexity() const;
  double bits_per_byte() const;
};

/// How the distributions of one computation differ from those of another, on the same tokens.
struct Difference {
  TextLoss exact;
  TextLoss other;
  double kl_sum = 0;  ///< Kullback-Leibler divergence from exact to other, in nats
  double kl_max = 0;
  double logit_max = 0;  ///< largest |difference| of two logits
  std::int64_t same_best = 0;
  double exact_seconds = 0;  ///< for the prompts, up to the first token
  double other_seconds = 0;
};

struct TextResult {
  TextLoss whole;  ///< of all windows, exact
  std::int64_t windows = 0;
  std::optional<Difference> difference;
};

struct TextOptions {
  std::int64_t window = 1024;       ///< tokens of a window, the last `continuation` of which are compared
  std::int64_t continuation = 64;   ///< >= 1, < window
  std::int64_t limit = 16;          ///< windows of a text at most
  std::function<void()> on_window;  ///< after each
};

/// Cuts `text` into windows, each begun with `bos`, and measures them. `other`: compared with `exact`.
/// Throws InputError (naming `subject`) for a text shorter than one window.
TextResult evaluate_text(const text::Tokenizer& tokenizer, const std::string& text,
                         const std::string& subject, const Computation& exact,
                         const std::optional<Computation>& other, const TextOptions& options);

/// Windows that evaluate_text will measure.
std::int64_t windows_of(std::int64_t tokens, const TextOptions& options);

struct Task {
  std::string kind;
  std::vector<std::int32_t> prompt;
  std::string answer;  ///< the whole text before end of sequence
};

/// The greedy answer equals the task's.
bool solves(const text::Tokenizer& tokenizer, const Task& task, const Computation& computation);

}  // namespace thalweg::bench
