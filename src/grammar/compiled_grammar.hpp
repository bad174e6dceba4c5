// A compiled constraint, and where an output stands in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace thalweg::grammar {

/// Immutable; shared by any number of matchers on any threads. Made by Compiler.
class CompiledGrammar {
 public:
  struct Rules;  ///< the compiled rules, which grammars that differ only in where they begin share

  /// What begins the grammar. Neither: it holds from the first token.
  struct Start {
    std::optional<std::int32_t> after_token;  ///< this token
    std::optional<std::int32_t> markup;       ///< this token after a text that ends with "<"
  };

  CompiledGrammar(std::shared_ptr<const Rules> rules, Start start)
      : rules_(std::move(rules)), start_(start) {}
  /// Bytes of the rules, about.
  std::size_t size() const;

 private:
  friend class Matcher;
  std::shared_ptr<const Rules> rules_;
  Start start_;
};

/// Where one output stands. A value: copies go on independently. One thread at a time.
///
/// A token is accepted after every mask it was drawn under; tokens accepted ahead (drafts) are taken back
/// with `rollback`. After end of sequence, and before the grammar begins, every token is allowed.
class Matcher {
 public:
  explicit Matcher(std::shared_ptr<const CompiledGrammar> grammar);
  ~Matcher();
  Matcher(const Matcher& other);
  Matcher& operator=(const Matcher& other);
  Matcher(Matcher&&) noexcept;
  Matcher& operator=(Matcher&&) noexcept;

  /// Words of a mask over the vocabulary.
  std::size_t mask_words() const;
  /// Writes which tokens may come next: bit t % 32 of word t / 32, end of sequence among them where the
  /// grammar may end. False: every token may, and `mask` (mask_words() long) is left as it is. Throws
  /// WorkError if it takes longer than GrammarLimits::mask_time; then the matcher is of no more use.
  bool fill_mask(std::span<std::uint32_t> mask);
  /// Takes one token. False, and nothing changes, if the grammar does not allow it.
  bool accept(std::int32_t token);
  /// Takes back the last `count` accepted tokens. Throws std::out_of_range if there are fewer.
  void rollback(std::size_t count);
  /// The output is complete as it stands: end of sequence is allowed.
  bool finished() const;
  /// Tokens accepted and not taken back.
  std::size_t length() const { return steps_.size(); }

 private:
  enum class Step : std::uint8_t { free, open, start, matched, end, after };
  struct State;
  bool begins(std::int32_t token) const;

  std::shared_ptr<const CompiledGrammar> grammar_;
  std::unique_ptr<State> state_;
  std::vector<Step> steps_;  // what every accepted token did
};

}  // namespace thalweg::grammar
