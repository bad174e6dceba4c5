// From the tree of an expression over a nondeterministic automaton to a deterministic one.
#include "schema/regex.hpp"

#include <algorithm>
#include <map>

#include "schema/regex_tree.hpp"
#include "schema/schema.hpp"

namespace thalweg::schema {
namespace {

using Kind = RegexTree::Kind;
using State = std::uint32_t;

constexpr std::size_t kMostStates = 20'000;

struct Edge {
  enum class Kind { free, at_start, at_end, set };
  Kind kind;
  CharacterRanges set;
  State to;
};

class Nfa {
 public:
  explicit Nfa(const RegexTree& tree) {
    const CharacterRanges any{{0, 0x10FFFF}};
    const State begin = add_state();
    final_ = add_state();
    add_edge(begin, {Edge::Kind::set, any, begin});
    add_edge(final_, {Edge::Kind::set, any, final_});
    const State inner = add_state();
    add_edge(begin, {Edge::Kind::free, {}, inner});
    build(tree, inner, final_);
  }

  std::vector<char32_t> class_starts() const {
    std::vector<char32_t> starts{0};
    for (const auto& edges : edges_) {
      for (const Edge& edge : edges) {
        for (const CharacterRange& range : edge.set) {
          starts.push_back(range.first);
          if (range.last < 0x10FFFF) starts.push_back(range.last + 1);
        }
      }
    }
    std::sort(starts.begin(), starts.end());
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    return starts;
  }

  // Sorted states reachable without reading.
  std::vector<State> closure(std::vector<State> states, bool at_start, bool at_end, Work& work) const {
    std::vector<bool> seen(edges_.size());
    for (const State state : states) seen[state] = true;
    for (std::size_t i = 0; i < states.size(); ++i) {
      const auto& edges = edges_[states[i]];
      work.spend(1 + edges.size() / 4);
      for (const Edge& edge : edges) {
        const bool open = edge.kind == Edge::Kind::free || (edge.kind == Edge::Kind::at_start && at_start) ||
                          (edge.kind == Edge::Kind::at_end && at_end);
        if (!open || seen[edge.to]) continue;
        seen[edge.to] = true;
        states.push_back(edge.to);
      }
    }
    std::sort(states.begin(), states.end());
    return states;
  }

  std::vector<State> read(const std::vector<State>& states, char32_t c) const {
    std::vector<State> targets;
    for (const State state : states) {
      for (const Edge& edge : edges_[state]) {
        const bool holds = edge.kind == Edge::Kind::set &&
                           std::any_of(edge.set.begin(), edge.set.end(), [&](const CharacterRange& range) {
                             return range.first <= c && c <= range.last;
                           });
        if (holds) targets.push_back(edge.to);
      }
    }
    std::sort(targets.begin(), targets.end());
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
    return targets;
  }

  State final_state() const { return final_; }

 private:
  State add_state() {
    if (edges_.size() >= kMostStates) throw TooLarge();
    edges_.emplace_back();
    return static_cast<State>(edges_.size() - 1);
  }
  void add_edge(State from, Edge edge) { edges_[from].push_back(std::move(edge)); }

  void build(const RegexTree& tree, State from, State to) {
    switch (tree.kind) {
      case Kind::empty:
        return add_edge(from, {Edge::Kind::free, {}, to});
      case Kind::set:
        return add_edge(from, {Edge::Kind::set, tree.set, to});
      case Kind::start:
        return add_edge(from, {Edge::Kind::at_start, {}, to});
      case Kind::end:
        return add_edge(from, {Edge::Kind::at_end, {}, to});
      case Kind::choice:
        for (const RegexTree& child : tree.children) {
          const State inner = add_state();
          add_edge(from, {Edge::Kind::free, {}, inner});
          build(child, inner, to);
        }
        return;
      case Kind::sequence:
        for (const RegexTree& child : tree.children) {
          const State after = add_state();
          build(child, from, after);
          from = after;
        }
        return add_edge(from, {Edge::Kind::free, {}, to});
      case Kind::repeat:
        return build_repeat(tree, from, to);
    }
  }

  void build_repeat(const RegexTree& tree, State from, State to) {
    const auto once = [&](State begin) {
      const State inner = add_state();
      const State after = add_state();
      add_edge(begin, {Edge::Kind::free, {}, inner});
      build(tree.children.front(), inner, after);
      return after;
    };
    for (std::size_t i = 0; i < tree.least; ++i) from = once(from);
    if (!tree.most) {
      const State loop = add_state();
      add_edge(from, {Edge::Kind::free, {}, loop});
      add_edge(once(loop), {Edge::Kind::free, {}, loop});
      return add_edge(loop, {Edge::Kind::free, {}, to});
    }
    for (std::size_t i = tree.least; i < *tree.most; ++i) {
      add_edge(from, {Edge::Kind::free, {}, to});
      from = once(from);
    }
    add_edge(from, {Edge::Kind::free, {}, to});
  }

  std::vector<std::vector<Edge>> edges_;
  State final_ = 0;
};

}  // namespace

Language search_language(std::string_view regex, Work& work) {
  if (regex.size() > SchemaLimits::pattern_bytes) throw TooLarge();
  const Nfa nfa(read_regex(regex));
  // State 0 is the start of the text, where '^' holds; the others are numbered as they are found.
  std::vector<std::vector<State>> sets{nfa.closure({0}, true, false, work)};
  std::map<std::vector<State>, std::uint64_t> numbers;
  const auto step = [&](std::uint64_t state, char32_t c) {
    const std::vector<State> from = sets[state];
    work.spend(from.size());
    auto next = nfa.closure(nfa.read(from, c), false, false, work);
    const auto [found, fresh] = numbers.emplace(next, sets.size());
    if (fresh) sets.push_back(std::move(next));
    return found->second;
  };
  const auto accepts = [&](std::uint64_t state) {
    const auto end = nfa.closure(sets[state], state == 0, true, work);
    return std::binary_search(end.begin(), end.end(), nfa.final_state());
  };
  return explore(nfa.class_starts(), step, accepts, work);
}

}  // namespace thalweg::schema
