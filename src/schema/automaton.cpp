#include "schema/automaton.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "schema/schema.hpp"

namespace thalweg::schema {
namespace {

constexpr char32_t kLast = 0x10FFFF;

struct HashRow {
  std::size_t operator()(const std::vector<std::uint32_t>& row) const {
    std::size_t hash = row.size();
    for (const std::uint32_t value : row) hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL + (hash >> 29);
    return hash;
  }
};

// The coarsest partition of the states whose blocks agree on acceptance and on the blocks they lead to.
std::vector<std::uint32_t> partition(const Automaton& a, Work& work) {
  std::vector<std::uint32_t> block(a.states());
  for (std::size_t s = 0; s < a.states(); ++s) block[s] = a.accepts[s] ? 1 : 0;
  for (std::size_t count = 0;;) {
    work.spend(a.states());
    std::unordered_map<std::vector<std::uint32_t>, std::uint32_t, HashRow> seen;
    std::vector<std::uint32_t> refined(a.states());
    for (std::size_t s = 0; s < a.states(); ++s) {
      std::vector<std::uint32_t> row{block[s]};
      for (std::size_t c = 0; c < a.classes(); ++c) row.push_back(block[a.next[s * a.classes() + c]]);
      refined[s] = seen.emplace(std::move(row), static_cast<std::uint32_t>(seen.size())).first->second;
    }
    block = std::move(refined);
    if (seen.size() == count) return block;
    count = seen.size();
  }
}

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
  return std::make_shared<const Automaton>(renumber(a, partition(a, work)));
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
                 const std::function<bool(std::uint64_t)>& accepts, Work& work) {
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
      if (order.size() > SchemaLimits::states) throw TooLarge();
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
      if (children.size() >= SchemaLimits::states) throw TooLarge();
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
      starts, step, [&](std::uint64_t node) { return node != dead && ends[node]; }, work);
}

Language lengths(std::size_t least, std::optional<std::size_t> most, Work& work) {
  const std::uint64_t last = most ? *most + 1 : least;
  return explore(
      {0}, [&](std::uint64_t n, char32_t) { return std::min(n + 1, last); },
      [&](std::uint64_t n) { return n >= least && (!most || n <= *most); }, work);
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
