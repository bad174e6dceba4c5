// Arrays as grammar parts.
#include <algorithm>
#include <map>

#include "schema/document.hpp"
#include "schema/shapes.hpp"
#include "schema/value_rules.hpp"

namespace thalweg::schema {
namespace {

constexpr std::size_t kMostStates = 2000;
constexpr std::size_t kMostValues = 12;  // of arrays without equal items: each subset of them is a state

SetId item_of(const ArrayShape& shape, std::size_t index) {
  return index < shape.prefix.size() ? shape.prefix[index] : shape.rest;
}

/// Arrays whose items do not depend on each other.
class PlainArray {
 public:
  PlainArray(const ArrayShape& shape, ValueRules& values)
      : shape_(shape), values_(values), rules_(values.rules()) {}

  PartId items() {
    const std::size_t prefix = shape_.prefix.size();
    PartId part = rest();
    for (std::size_t i = std::min(prefix, shape_.most.value_or(prefix)); i-- > 0;) {
      part = rules_.sequence({separator(i), values_.value(shape_.prefix[i]), part});
      if (i >= shape_.least) part = rules_.choice({rules_.nothing(), part});
    }
    return part;
  }

 private:
  PartId separator(std::size_t index) { return index == 0 ? rules_.nothing() : values_.comma(); }

  // What follows the prefix.
  PartId rest() {
    const std::size_t prefix = shape_.prefix.size();
    if (shape_.most && *shape_.most <= prefix) return rules_.nothing();
    const std::size_t least = shape_.least > prefix ? shape_.least - prefix : 0;
    std::optional<std::size_t> most;
    if (shape_.most) most = *shape_.most - prefix;
    const PartId item = values_.value(shape_.rest);
    const PartId next = rules_.sequence({values_.comma(), item});
    if (prefix > 0) return rules_.repeat(next, least, most);
    std::optional<std::size_t> more;
    if (most) more = *most - 1;
    const PartId some = rules_.sequence({item, rules_.repeat(next, least > 0 ? least - 1 : 0, more)});
    return least > 0 ? some : rules_.choice({rules_.nothing(), some});
  }

  const ArrayShape& shape_;
  ValueRules& values_;
  Rules& rules_;
};

/// Arrays of which some items are counted. A state is the number of items so far and the counts.
class CountedArray {
 public:
  CountedArray(const ArrayShape& shape, ValueRules& values)
      : shape_(shape), values_(values), rules_(values.rules()) {
    last_ = std::max(shape.prefix.size(), shape.least);
    if (shape.most) last_ = std::max(last_, *shape.most);
    for (const Counted& counted : shape.counted) last_ = std::max(last_, counted.from);
    last_ = std::max<std::size_t>(last_, 1);
  }

  PartId items() { return state(std::vector<std::size_t>(shape_.counted.size() + 1)); }

 private:
  using State = std::vector<std::size_t>;

  PartId state(const State& at) {
    const auto [found, fresh] = named_.try_emplace(at, 0);
    if (fresh) {
      if (named_.size() > kMostStates) throw TooLarge();
      const RuleId rule = found->second = rules_.add_rule();
      rules_.define(rule, body(at));
      return rules_.reference(rule);
    }
    return rules_.reference(found->second);
  }

  bool may_end(const State& at) const {
    for (std::size_t i = 0; i < shape_.counted.size(); ++i) {
      if (at[i + 1] < shape_.counted[i].least) return false;
    }
    return at[0] >= shape_.least;
  }

  PartId body(const State& at) {
    std::vector<PartId> branches;
    if (may_end(at)) branches.push_back(rules_.nothing());
    if (!shape_.most || at[0] < *shape_.most) {
      State next = at;
      next[0] = std::min(at[0] + 1, last_);
      add_items(at, 0, item_of(shape_, at[0]), next, branches);
    }
    return rules_.choice(branches);
  }

  // Branches over whether the item is one of those counted by `shape_.counted[index]` and those behind it.
  void add_items(const State& at, std::size_t index, SetId item, State next, std::vector<PartId>& branches) {
    if (item == kNothing || values_.sets().is_empty(item)) return;
    if (index == shape_.counted.size()) {
      branches.push_back(rules_.sequence(
          {at[0] == 0 ? rules_.nothing() : values_.comma(), values_.value(item), state(next)}));
      return;
    }
    const Counted& counted = shape_.counted[index];
    const std::size_t count = at[index + 1];
    const bool settled = at[0] < counted.from || (!counted.most && count >= counted.least);
    if (settled) return add_items(at, index + 1, item, next, branches);
    Sets& sets = values_.sets();
    add_items(at, index + 1, sets.both({item, sets.negation(counted.item)}), next, branches);
    if (counted.most && count >= *counted.most) return;
    ++next[index + 1];
    add_items(at, index + 1, sets.both({item, counted.item}), next, branches);
  }

  const ArrayShape& shape_;
  ValueRules& values_;
  Rules& rules_;
  std::size_t last_;
  std::map<State, RuleId> named_;
};

/// Arrays without equal items, of few values. A state is the number of items and the set of those used.
class UniqueArray {
 public:
  UniqueArray(const ArrayShape& shape, ValueRules& values)
      : shape_(shape), values_(values), rules_(values.rules()) {}

  PartId items() {
    const std::size_t most = shape_.most.value_or(kMostValues + shape_.prefix.size());
    for (std::size_t i = 0; i < std::max<std::size_t>(shape_.prefix.size() + 1, 1); ++i) {
      if (i >= most) break;
      const auto list = values_.sets().list_values(item_of(shape_, i), kMostValues);
      if (!list || !shape_.counted.empty())
        throw SchemaError("uniqueItems", shape_.unique->path,
                          "a grammar can keep items apart only if they are few and listed");
      for (const Value& value : *list) {
        if (std::find(all_.begin(), all_.end(), value) == all_.end()) all_.push_back(value);
      }
      allowed_.push_back(*list);
    }
    if (all_.size() > kMostValues)
      throw SchemaError("uniqueItems", shape_.unique->path, "a grammar can keep apart at most 12 values");
    return state({0, 0});
  }

 private:
  using State = std::pair<std::size_t, std::size_t>;

  PartId state(const State& at) {
    const auto [found, fresh] = named_.try_emplace(at, 0);
    if (!fresh) return rules_.reference(found->second);
    const RuleId rule = found->second = rules_.add_rule();
    std::vector<PartId> branches;
    if (at.first >= shape_.least) branches.push_back(rules_.nothing());
    const bool full = (shape_.most && at.first >= *shape_.most) || allowed_.empty();
    for (std::size_t v = 0; v < all_.size() && !full; ++v) {
      const auto& list = allowed_[std::min(at.first, allowed_.size() - 1)];
      const bool fits = std::find(list.begin(), list.end(), all_[v]) != list.end();
      if (!fits || (at.second >> v) % 2 == 1) continue;
      branches.push_back(rules_.sequence({at.first == 0 ? rules_.nothing() : values_.comma(),
                                          rules_.literal(to_text(all_[v])),
                                          state({at.first + 1, at.second | (std::size_t{1} << v)})}));
    }
    rules_.define(rule, rules_.choice(branches));
    return rules_.reference(rule);
  }

  const ArrayShape& shape_;
  ValueRules& values_;
  Rules& rules_;
  std::vector<Value> all_;
  std::vector<std::vector<Value>> allowed_;  // by index; the last for all further ones
  std::map<State, RuleId> named_;
};

PartId items_part(const ArrayShape& shape, ValueRules& values) {
  if (shape.unique != nullptr && !(shape.most && *shape.most < 2)) return UniqueArray(shape, values).items();
  if (!shape.counted.empty()) return CountedArray(shape, values).items();
  return PlainArray(shape, values).items();
}

}  // namespace

PartId array_part(const ArrayShape& shape, ValueRules& values) {
  Rules& rules = values.rules();
  return rules.sequence(
      {rules.literal("["), values.blank(), items_part(shape, values), values.blank(), rules.literal("]")});
}

}  // namespace thalweg::schema
