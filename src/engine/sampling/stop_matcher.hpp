// Stop strings in a stream of output bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/sampling/sampling_params.hpp"

namespace thalweg::engine {

/// The stop strings of a request, prepared for matching. Immutable, shared by all matchers of the request.
class StopStrings {
 public:
  /// Throws InputError for an empty string or more than SamplingLimits::max_stop_strings.
  explicit StopStrings(std::vector<std::string> strings);

  std::size_t size() const { return strings_.size(); }
  const std::string& operator[](std::size_t i) const { return strings_[i]; }

  /// Bytes of string `i` matched at the end of the stream after `byte`, given `matched` before it. Amortised
  /// constant.
  std::uint32_t advance(std::size_t i, std::uint32_t matched, char byte) const;
  /// Bytes of the stream's end that may still grow into string `i`: `matched`, or its border if it is the
  /// whole string.
  std::uint32_t open_part(std::size_t i, std::uint32_t matched) const {
    return matched == strings_[i].size() ? borders_[i][matched - 1] : matched;
  }

 private:
  std::vector<std::string> strings_;
  std::vector<std::vector<std::uint32_t>>
      borders_;  // longest proper border of every prefix (Knuth-Morris-Pratt)
};

/// Finds the first stop string in text that arrives in pieces, and says what of the text may be shown. Held
/// back is exactly the longest end of the text that may still become a stop string, never more; what was
/// shown is never taken back. Works on bytes: pieces may be cut anywhere, inside a character too. A small
/// value: copy it to be able to go back (speculation); copies do not affect each other.
class StopMatcher {
 public:
  /// `strings` may be null or empty: everything is shown at once.
  explicit StopMatcher(std::shared_ptr<const StopStrings> strings, bool include_stop = false);

  struct Shown {
    std::string text;  ///< newly visible, in order
    /// The stop string that ended the text. The one whose last byte comes first wins; of several that end
    /// with the same byte the longest, so that no part of any is shown.
    std::optional<std::size_t> stop;
    std::size_t consumed =
        0;  ///< bytes of the piece up to and with the last byte of the stop string; all if none
  };

  /// Takes the next piece. With `armed` false (before min_tokens) stop strings that end in this piece are
  /// ordinary text; one that begins in it and ends in a later, armed piece counts. After a stop every piece
  /// is ignored.
  Shown push(std::string_view piece, bool armed = true);
  /// The stream is over: what was held back is text after all.
  std::string finish();

  /// A stop string was found, or the stream was finished.
  bool stopped() const { return stopped_; }
  /// Bytes held back.
  std::size_t held() const { return held_string().size(); }

 private:
  std::string_view held_string() const;

  std::shared_ptr<const StopStrings> strings_;
  std::array<std::uint32_t, SamplingLimits::max_stop_strings> matched_{};  // per string: bytes matched so far
  bool include_stop_ = false;
  bool stopped_ = false;
};

}  // namespace thalweg::engine
