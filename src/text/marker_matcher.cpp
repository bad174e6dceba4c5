#include "text/marker_matcher.hpp"

#include <algorithm>
#include <utility>

namespace thalweg::text {
namespace {

void append_symbol(std::string& out, Symbol symbol) {
  if (symbol == kEndThink) {
    out += "</think>";
  } else if (symbol == kDsml) {
    out += "｜DSML｜";
  } else {
    out += static_cast<char>(symbol);
  }
}

}  // namespace

MarkerSet::MarkerSet(std::vector<Marker> markers) : markers_(std::move(markers)), nodes_(1) {
  for (std::uint32_t i = 0; i < markers_.size(); ++i) insert(i);
  link_failures();
  counts_newlines_ =
      std::any_of(markers_.begin(), markers_.end(), [](const Marker& m) { return m.swallows_newlines; });
}

void MarkerSet::insert(std::uint32_t marker) {
  std::uint32_t node = 0;
  for (const Symbol symbol : markers_[marker].symbols) {
    std::uint32_t next = child(node, symbol);
    if (next == kNone) {
      next = static_cast<std::uint32_t>(nodes_.size());
      Node fresh;
      fresh.symbol = symbol;
      fresh.depth = nodes_[node].depth + 1;
      fresh.next_sibling = std::exchange(nodes_[node].first_child, next);
      fresh.owner = marker;
      nodes_.push_back(fresh);
    }
    node = next;
    if (markers_[marker].swallows_newlines) nodes_[node].swallower_depth = nodes_[node].depth;
  }
  nodes_[node].completes = std::min(nodes_[node].completes, marker);
}

// Breadth first, so that a node's failure is complete before the node is visited.
void MarkerSet::link_failures() {
  std::vector<std::uint32_t> queue{0};
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const std::uint32_t parent = queue[head];
    for (std::uint32_t node = nodes_[parent].first_child; node != kNone; node = nodes_[node].next_sibling) {
      Node& here = nodes_[node];
      here.failure = parent == 0 ? 0 : follow(nodes_[parent].failure, here.symbol);
      const Node& suffix = nodes_[here.failure];
      here.completes = std::min(here.completes, suffix.completes);
      here.swallower_depth = std::max(here.swallower_depth, suffix.swallower_depth);
      queue.push_back(node);
    }
  }
}

std::uint32_t MarkerSet::child(std::uint32_t node, Symbol symbol) const {
  std::uint32_t next = nodes_[node].first_child;
  while (next != kNone && nodes_[next].symbol != symbol) next = nodes_[next].next_sibling;
  return next;
}

std::uint32_t MarkerSet::follow(std::uint32_t node, Symbol symbol) const {
  for (;; node = nodes_[node].failure) {
    if (const std::uint32_t next = child(node, symbol); next != kNone) return next;
    if (node == 0) return 0;
  }
}

std::optional<std::size_t> MarkerSet::advance(Position& position, Symbol symbol, std::string_view spelling,
                                              std::string& released) const {
  const Position before = position;
  const std::size_t held_before = held_length(before);
  position.node = follow(before.node, symbol);
  const Node& now = nodes_[position.node];
  if (counts_newlines_) {
    const std::uint32_t matched = nodes_[before.node].swallower_depth;
    if (symbol == '\n') {
      position.newlines = matched == 0 ? before.newlines + 1 : 1;
    } else if (now.swallower_depth != matched + 1) {
      position.newlines = 0;  // the match starts elsewhere, behind a symbol that is no newline
    }
  }
  std::size_t kept = held_length(position);
  std::optional<std::size_t> complete;
  if (now.completes != kNone) {
    const Marker& marker = markers_[now.completes];
    complete = now.completes;
    kept = marker.symbols.size() + (marker.swallows_newlines ? position.newlines : 0);
    position = {};
  }
  const std::size_t free = held_before + 1 - kept;
  append_prefix_of_held(before, std::min(free, held_before), released);
  if (free > held_before) released += spelling;
  return complete;
}

std::optional<std::size_t> MarkerSet::completes_at_once(Symbol symbol) const {
  const std::uint32_t node = child(0, symbol);
  if (node == kNone || nodes_[node].completes == kNone) return std::nullopt;
  return nodes_[node].completes;
}

void MarkerSet::append_held(Position position, std::string& out) const {
  append_prefix_of_held(position, held_length(position), out);
}

std::size_t MarkerSet::held_length(Position position) const {
  const Node& node = nodes_[position.node];
  return std::max<std::size_t>(node.depth, std::size_t{position.newlines} + node.swallower_depth);
}

// What is held is the path to the node, or newlines and the end of that path, whichever is longer.
void MarkerSet::append_prefix_of_held(Position position, std::size_t count, std::string& out) const {
  const Node& node = nodes_[position.node];
  std::size_t skipped = 0;
  if (std::size_t{position.newlines} + node.swallower_depth > node.depth) {
    const std::size_t newlines = std::min<std::size_t>(count, position.newlines);
    out.append(newlines, '\n');
    count -= newlines;
    skipped = node.depth - node.swallower_depth;
  }
  if (count == 0) return;  // also where there is no marker at all
  const std::vector<Symbol>& path = markers_[node.owner].symbols;
  for (std::size_t i = 0; i < count; ++i) append_symbol(out, path[skipped + i]);
}

}  // namespace thalweg::text
