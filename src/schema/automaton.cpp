#include "schema/automaton.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "schema/schema.hpp"

namespace thalweg::schema {
namespace {

constexpr char32_t kLast = 0x10FFFF;
constexpr std::size_t kMostPrefixes = 20'000;  // of the words of a list

/// Hopcroft's refinement: splits blocks of states until the states of each agree on acceptance and on the
/// blocks they lead to.
class Partition {
 public:
  explicit Partition(const Automaton& a)
      : a_(a), block_of_(a.states()), order_(a.states()), place_(a.states()) {
    std::uint32_t accepting = 0;
    for (const bool accepts : a.accepts) accepting += accepts ? 1 : 0;
    std::uint32_t low = 0;
    std::uint32_t high = accepting;
    for (std::uint32_t s = 0; s < a.states(); ++s) put(s, a.accepts[s] ? low++ : high++);
    if (accepting > 0) add_block(0, accepting);
    if (accepting < a.states()) add_block(accepting, static_cast<std::uint32_t>(a.states()));
    find_sources();
  }

  /// The block of each state.
  std::vector<std::uint32_t> refine(Work& work) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> waiting;  // block, class
    const auto wait_for = [&](std::uint32_t block) {
      for (std::uint32_t c = 0; c < a_.classes(); ++c) waiting.emplace_back(block, c);
    };
    for (std::uint32_t block = 0; block < blocks_.size(); ++block) wait_for(block);
    std::vector<std::uint32_t> sources;
    while (!waiting.empty()) {
      const auto [splitter, c] = waiting.back();
      waiting.pop_back();
      sources.clear();
      for (std::uint32_t i = blocks_[splitter].begin; i < blocks_[splitter].end; ++i) {
        const std::size_t edge = order_[i] * a_.classes() + c;
        sources.insert(sources.end(), sources_.begin() + first_[edge], sources_.begin() + first_[edge + 1]);
      }
      work.spend(1 + sources.size() / 2);
      for (const std::uint32_t state : sources) mark(state);
      for (const std::uint32_t block : touched_) {
        if (const auto fresh = split(block)) wait_for(*fresh);
      }
      touched_.clear();
    }
    return block_of_;
  }

 private:
  struct Block {
    std::uint32_t begin, end;
    std::uint32_t marked;  // the states before this place are marked
  };

  void put(std::uint32_t state, std::uint32_t place) {
    order_[place] = state;
    place_[state] = place;
  }
  void add_block(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t i = begin; i < end; ++i)
      block_of_[order_[i]] = static_cast<std::uint32_t>(blocks_.size());
    blocks_.push_back({begin, end, begin});
  }
  // sources_[first_[s * classes + c] ...] lead to state s by class c.
  void find_sources() {
    first_.assign(a_.next.size() + 1, 0);
    const auto edge_of = [&](std::size_t i) { return a_.next[i] * a_.classes() + i % a_.classes(); };
    for (std::size_t i = 0; i < a_.next.size(); ++i) ++first_[edge_of(i) + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    sources_.resize(a_.next.size());
    for (std::size_t i = 0; i < a_.next.size(); ++i)
      sources_[next[edge_of(i)]++] = static_cast<std::uint32_t>(i / a_.classes());
  }
  void mark(std::uint32_t state) {
    Block& block = blocks_[block_of_[state]];
    if (place_[state] < block.marked) return;
    if (block.marked == block.begin) touched_.push_back(block_of_[state]);
    const std::uint32_t other = order_[block.marked];
    put(other, place_[state]);
    put(state, block.marked++);
  }
  // The smaller part of a block of which some states are marked becomes a block.
  std::optional<std::uint32_t> split(std::uint32_t number) {
    const Block block = blocks_[number];
    blocks_[number].marked = block.begin;
    if (block.marked == block.end) return std::nullopt;
    const bool first_is_smaller = block.marked - block.begin <= block.end - block.marked;
    blocks_[number] = first_is_smaller ? Block{block.marked, block.end, block.marked}
                                       : Block{block.begin, block.marked, block.begin};
    add_block(first_is_smaller ? block.begin : block.marked, first_is_smaller ? block.marked : block.end);
    return static_cast<std::uint32_t>(blocks_.size() - 1);
  }

  const Automaton& a_;
  std::vector<std::uint32_t> block_of_;
  std::vector<std::uint32_t> order_;  // states, those of a block together
  std::vector<std::uint32_t> place_;  // of a state in order_
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> touched_;
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> sources_;
};

// Blocks become states in breadth-first order; classes that no state tells apart are joined.
Automaton renumber(const Automaton& a, const std::vector<std::uint32_t>& block) {
  std::vector<std::int64_t> number(a.states(), -1);
  std::vector<std::uint32_t> order{0};  // a state of each block, in the order of the new numbers
  number[block[0]] = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t c = 0; c < a.classes(); ++c) {
      const std::uint32_t target = a.next[order[i] * a.classes() + c];
      if (number[block[target]] >= 0) continue;
      number[block[target]] = static_cast<std::int64_t>(order.size());
      order.push_back(target);
    }
  }
  const auto to = [&](std::uint32_t state, std::size_t c) {
    return static_cast<std::uint32_t>(number[block[a.next[state * a.classes() + c]]]);
  };
  std::vector<std::size_t> kept;
  for (std::size_t c = 0; c < a.classes(); ++c) {
    const bool same = c > 0 && std::all_of(order.begin(), order.end(), [&](std::uint32_t state) {
                        return to(state, c) == to(state, c - 1);
                      });
    if (!same) kept.push_back(c);
  }
  Automaton result;
  for (const std::size_t c : kept) result.starts.push_back(a.starts[c]);
  for (const std::uint32_t state : order) {
    result.accepts.push_back(a.accepts[state]);
    for (const std::size_t c : kept) result.next.push_back(to(state, c));
  }
  return result;
}

Language minimal(const Automaton& a, Work& work) {
  return std::make_shared<const Automaton>(renumber(a, Partition(a).refine(work)));
}

Language constant(bool accepts) {
  return std::make_shared<const Automaton>(Automaton{{0}, {0}, {accepts}});
}

std::vector<char32_t> merged_starts(const Automaton& a, const Automaton& b) {
  std::vector<char32_t> starts;
  std::set_union(a.starts.begin(), a.starts.end(), b.starts.begin(), b.starts.end(),
                 std::back_inserter(starts));
  return starts;
}

Language product(const Language& a, const Language& b, bool both, Work& work) {
  const auto step = [&](std::uint64_t pair, char32_t c) {
    return (std::uint64_t{a->step(static_cast<std::uint32_t>(pair >> 32), c)} << 32) |
           b->step(static_cast<std::uint32_t>(pair), c);
  };
  const auto accepts = [&](std::uint64_t pair) {
    const bool in_a = a->accepts[pair >> 32];
    const bool in_b = b->accepts[pair & 0xFFFFFFFF];
    return both ? in_a && in_b : in_a || in_b;
  };
  return explore(merged_starts(*a, *b), step, accepts, work);
}

}  // namespace

std::uint32_t Automaton::step(std::uint32_t state, char32_t character) const {
  const auto after = std::upper_bound(starts.begin(), starts.end(), character);
  return next[state * classes() + static_cast<std::size_t>(after - starts.begin()) - 1];
}

CharacterRanges normalised(CharacterRanges ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CharacterRange& a, const CharacterRange& b) { return a.first < b.first; });
  CharacterRanges result;
  for (const CharacterRange& range : ranges) {
    if (!result.empty() && range.first <= result.back().last + 1) {
      result.back().last = std::max(result.back().last, range.last);
    } else {
      result.push_back(range);
    }
  }
  return result;
}

CharacterRanges complement(const CharacterRanges& ranges) {
  CharacterRanges result;
  char32_t first = 0;
  for (const CharacterRange& range : normalised(ranges)) {
    if (range.first > first) result.push_back({first, range.first - 1});
    first = range.last + 1;
  }
  if (first <= kLast) result.push_back({first, kLast});
  return result;
}

Language explore(std::vector<char32_t> starts,
                 const std::function<std::uint64_t(std::uint64_t, char32_t)>& step,
                 const std::function<bool(std::uint64_t)>& accepts, Work& work, std::size_t limit) {
  Automaton a;
  a.starts = std::move(starts);
  std::unordered_map<std::uint64_t, std::uint32_t> number{{0, 0}};
  std::vector<std::uint64_t> order{0};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint64_t state = order[i];
    work.spend(a.classes());
    a.accepts.push_back(accepts(state));
    for (const char32_t c : a.starts) {
      const std::uint64_t target = step(state, c);
      const auto [found, fresh] = number.emplace(target, static_cast<std::uint32_t>(order.size()));
      if (fresh) order.push_back(target);
      if (order.size() > limit) throw TooLarge();
      a.next.push_back(found->second);
    }
  }
  return minimal(a, work);
}

Language all_strings() {
  static const Language all = constant(true);
  return all;
}

Language no_strings() {
  static const Language none = constant(false);
  return none;
}

Language words(std::vector<std::string> list, Work& work) {
  // A tree of prefixes; node 0 is the root, the dead state is the one after the last.
  std::vector<std::map<char32_t, std::uint32_t>> children(1);
  std::vector<bool> ends(1, false);
  std::vector<char32_t> starts{0};
  for (const std::string& word : list) {
    std::uint32_t node = 0;
    for (const char32_t c : characters_of(word)) {
      const auto [found, fresh] = children[node].emplace(c, static_cast<std::uint32_t>(children.size()));
      node = found->second;
      if (!fresh) continue;
      children.emplace_back();
      ends.push_back(false);
      starts.push_back(c);
      if (c < kLast) starts.push_back(c + 1);
      if (children.size() >= kMostPrefixes) throw TooLarge();
    }
    ends[node] = true;
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  const auto dead = static_cast<std::uint64_t>(children.size());
  const auto step = [&](std::uint64_t node, char32_t c) -> std::uint64_t {
    if (node == dead) return dead;
    const auto found = children[node].find(c);
    return found == children[node].end() ? dead : found->second;
  };
  return explore(
      starts, step, [&](std::uint64_t node) { return node != dead && ends[node]; }, work, kMostPrefixes + 1);
}

Language with_lengths(const Language& a, std::size_t least, std::optional<std::size_t> most, Work& work) {
  if (least == 0 && !most) return a;
  if (least > SchemaLimits::states || (most && *most < least)) {
    if (most && *most < least) return no_strings();
    throw TooLarge();
  }
  const std::vector<bool> live = live_states(*a);
  const std::size_t last = most ? *most + 1 : least;
  constexpr std::uint64_t dead = ~std::uint64_t{0};
  // A state of `a` and the number of characters so far.
  const auto step = [&](std::uint64_t from, char32_t c) -> std::uint64_t {
    if (from == dead) return dead;
    const std::uint64_t length = std::min<std::uint64_t>((from >> 32) + 1, last);
    const std::uint32_t state = a->step(static_cast<std::uint32_t>(from), c);
    return !live[state] || (most && length > *most) ? dead : (length << 32) | state;
  };
  const auto accepts = [&](std::uint64_t from) {
    return from != dead && (from >> 32) >= least && a->accepts[from & 0xFFFFFFFF];
  };
  return explore(a->starts, step, accepts, work);
}

Language intersect(const Language& a, const Language& b, Work& work) {
  if (is_all(a)) return b;
  if (is_all(b)) return a;
  return product(a, b, true, work);
}

Language unite(const Language& a, const Language& b, Work& work) {
  if (is_empty(a)) return b;
  if (is_empty(b)) return a;
  return product(a, b, false, work);
}

Language complement(const Language& a) {
  auto result = std::make_shared<Automaton>(*a);
  result->accepts.flip();
  return result;
}

bool is_empty(const Language& a) {
  return a->states() == 1 && !a->accepts[0];
}

bool is_all(const Language& a) {
  return a->states() == 1 && a->accepts[0];
}

bool equal(const Language& a, const Language& b) {
  return a == b || *a == *b;
}

bool contains(const Language& a, std::string_view text) {
  std::uint32_t state = 0;
  for (const char32_t c : characters_of(text)) state = a->step(state, c);
  return a->accepts[state];
}

std::vector<bool> live_states(const Automaton& a) {
  std::vector<std::vector<std::uint32_t>> sources(a.states());
  for (std::size_t s = 0; s < a.states(); ++s) {
    for (std::size_t c = 0; c < a.classes(); ++c)
      sources[a.next[s * a.classes() + c]].push_back(static_cast<std::uint32_t>(s));
  }
  std::vector<bool> live = a.accepts;
  std::vector<std::uint32_t> waiting;
  for (std::uint32_t s = 0; s < a.states(); ++s) {
    if (live[s]) waiting.push_back(s);
  }
  while (!waiting.empty()) {
    const std::uint32_t state = waiting.back();
    waiting.pop_back();
    for (const std::uint32_t source : sources[state]) {
      if (live[source]) continue;
      live[source] = true;
      waiting.push_back(source);
    }
  }
  return live;
}

std::optional<std::vector<std::string>> list_words(const Language& a, std::size_t most) {
  const std::vector<bool> live = live_states(*a);
  std::vector<std::string> found;
  // Words of one length at a time; a language with a word longer than it has states is infinite.
  std::vector<std::pair<std::uint32_t, std::string>> level;
  if (live[0]) level.emplace_back(0, "");
  for (std::size_t length = 0; !level.empty(); ++length) {
    if (length > a->states()) return std::nullopt;
    std::vector<std::pair<std::uint32_t, std::string>> longer;
    for (const auto& [state, word] : level) {
      if (a->accepts[state]) found.push_back(word);
      for (std::size_t c = 0; c < a->classes(); ++c) {
        const std::uint32_t target = a->next[state * a->classes() + c];
        if (!live[target]) continue;
        const char32_t end = c + 1 < a->classes() ? a->starts[c + 1] : kLast + 1;
        for (char32_t character = a->starts[c]; character < end; ++character) {
          if (longer.size() + found.size() >= most * 4) return std::nullopt;
          longer.emplace_back(target, word + utf8_of(character));
        }
      }
    }
    level = std::move(longer);
  }
  if (found.size() > most) return std::nullopt;
  return found;
}

std::u32string characters_of(std::string_view text) {
  std::u32string result;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    char32_t c = length == 1 ? lead : lead & (0x7FU >> length);
    for (std::size_t k = 1; k < length && i + k < text.size(); ++k)
      c = (c << 6) | (static_cast<unsigned char>(text[i + k]) & 0x3F);
    result += c;
    i += length;
  }
  return result;
}

std::string utf8_of(char32_t c) {
  std::string text;
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | ((c >> shift) & 0x3F)); };
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xC0 | (c >> 6));
    tail(0);
  } else if (c < 0x10000) {
    text += static_cast<char>(0xE0 | (c >> 12));
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xF0 | (c >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
  return text;
}

}  // namespace thalweg::schema
