// Watching a stream of symbols for several markers at once, holding back what may still belong to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::text {

/// What a model writes, one unit at a time: a byte of ordinary text, or a special token.
using Symbol = std::uint16_t;
inline constexpr Symbol kEndThink = 256;      ///< the special token </think>
inline constexpr Symbol kDsml = 257;          ///< the special token ｜DSML｜
inline constexpr Symbol kOtherSpecial = 258;  ///< any other special token: part of no marker

/// A sequence of symbols to look for.
struct Marker {
  std::vector<Symbol> symbols;     ///< not empty
  bool swallows_newlines = false;  ///< the run of '\n' directly in front belongs to the match
};

/// The Aho-Corasick automaton of the markers watched in one state. Immutable; any number of threads may read
/// it.
///
/// What is held back is always determined by the position in the automaton and a count of newlines, so a
/// Position is all the state there is. Time is linear in the symbols fed, whatever they are.
class MarkerSet {
 public:
  /// Progress of one stream through this set; {} is the start.
  struct Position {
    std::uint32_t node = 0;
    std::uint32_t newlines = 0;  ///< held newlines in front of the part of a marker matched so far
    bool operator==(const Position&) const = default;
  };

  /// `markers` in order of precedence. Symbols of markers that swallow newlines must not contain '\n'.
  explicit MarkerSet(std::vector<Marker> markers);

  /// Feeds `symbol`, shown as `spelling`. Appends to `released` the text that can no longer belong to a
  /// marker. Returns the index of the marker that completes here, the first in order if several do;
  /// `position` is then the start again, and the match is not part of `released`.
  std::optional<std::size_t> advance(Position& position, Symbol symbol, std::string_view spelling,
                                     std::string& released) const;

  /// Appends the text held at `position`.
  void append_held(Position position, std::string& out) const;

  /// Index of the marker that `symbol` alone, fed at the start, would complete.
  std::optional<std::size_t> completes_at_once(Symbol symbol) const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Node {
    Symbol symbol = 0;                  ///< on the edge from the parent
    std::uint32_t depth = 0;            ///< length of the path from the root
    std::uint32_t first_child = kNone;  ///< children are a linked list
    std::uint32_t next_sibling = kNone;
    std::uint32_t failure = 0;          ///< node of the longest proper suffix
    std::uint32_t swallower_depth = 0;  ///< longest suffix that begins a marker which swallows newlines
    std::uint32_t completes = kNone;    ///< first marker that ends here
    std::uint32_t owner = 0;            ///< a marker whose first `depth` symbols are the path
  };

  std::uint32_t child(std::uint32_t node, Symbol symbol) const;
  std::uint32_t follow(std::uint32_t node, Symbol symbol) const;
  void insert(std::uint32_t marker);
  void link_failures();
  std::size_t held_length(Position position) const;
  void append_prefix_of_held(Position position, std::size_t count, std::string& out) const;

  std::vector<Marker> markers_;
  std::vector<Node> nodes_;
  bool counts_newlines_ = false;
};

}  // namespace thalweg::text
