// Objects as grammar parts: declared properties in declared order, then the others.
#include <algorithm>
#include <map>
#include <tuple>

#include "schema/document.hpp"
#include "schema/shapes.hpp"
#include "schema/value_rules.hpp"

namespace thalweg::schema {
namespace {

constexpr std::size_t kMostConditions = 4;

/// A state is the next property, whether a member stands before it, how many members there are (as far as
/// that matters) and which conditions on "some member" are met.
///
/// A grammar cannot see that a name of the others is repeated; readers then take the last value. So at most
/// one of the others counts towards the least number of members, and one that meets a condition comes last.
class ObjectWriter {
 public:
  ObjectWriter(const ObjectShape& shape, ValueRules& values)
      : shape_(shape), values_(values), rules_(values.rules()), sets_(values.sets()) {
    if (shape.some.size() > kMostConditions) throw TooLarge();
    std::vector<std::string> names;
    std::size_t possible = 0;
    std::size_t required = 0;
    for (const Property& property : shape.properties) {
      names.push_back(property.name);
      possible += property.value == kNothing ? 0 : 1;
      required += property.required ? 1 : 0;
    }
    counts_ = shape.most || shape.least > required;
    last_count_ = shape.most ? *shape.most + 1 : shape.least;
    if (shape.least > possible + 1 && has_others())
      throw SchemaError("minProperties", shape.origin == nullptr ? "" : shape.origin->path,
                        "a grammar cannot keep apart more than one name that is not declared");
    undeclared_ = names.empty() ? all_strings() : complement(words(std::move(names), sets_.work()));
  }

  PartId members() { return state({0, false, 0, 0}); }

 private:
  struct State {
    std::size_t next;
    bool written;
    std::size_t count;
    unsigned met;
    auto operator<=>(const State&) const = default;
  };

  bool has_others() const {
    return std::any_of(shape_.others.begin(), shape_.others.end(),
                       [](const Others& others) { return others.value != kNothing; });
  }

  PartId separator(bool written) { return written ? values_.comma() : rules_.nothing(); }

  PartId state(const State& at) {
    const auto [found, fresh] = named_.try_emplace(at, 0);
    if (!fresh) return rules_.reference(found->second);
    const RuleId rule = found->second = rules_.add_rule();
    waiting_.emplace_back(at, rule);
    if (writing_) return rules_.reference(rule);
    writing_ = true;
    while (!waiting_.empty()) {
      const auto [state, name] = waiting_.back();
      waiting_.pop_back();
      rules_.define(name, state.next < shape_.properties.size() ? property(state) : others(state));
    }
    writing_ = false;
    return rules_.reference(rule);
  }

  PartId property(const State& at) {
    const Property& property = shape_.properties[at.next];
    std::vector<PartId> branches;
    State after = at;
    ++after.next;
    if (!property.required) branches.push_back(state(after));
    after.written = true;
    if (counts_) after.count = std::min(at.count + 1, last_count_);
    if (!shape_.most || after.count <= *shape_.most)
      add_property(property, at, 0, property.value, after, branches);
    return rules_.choice(branches);
  }

  // Branches over whether the member meets condition `index` and those behind it.
  void add_property(const Property& property, const State& at, std::size_t index, SetId value, State after,
                    std::vector<PartId>& branches) {
    if (value == kNothing) return;
    if (index == shape_.some.size()) {
      branches.push_back(rules_.sequence({separator(at.written), rules_.literal(quoted(property.name) + ":"),
                                          values_.blank(), values_.value(value), state(after)}));
      return;
    }
    const Others& condition = shape_.some[index];
    const bool settled = (at.met >> index) % 2 == 1 || !contains(condition.names, property.name);
    if (settled) return add_property(property, at, index + 1, value, after, branches);
    add_property(property, at, index + 1, sets_.both({value, sets_.negation(condition.value)}), after,
                 branches);
    after.met |= 1U << index;
    add_property(property, at, index + 1, sets_.both({value, condition.value}), after, branches);
  }

  // A member whose name is not declared; `conditions`: and which meets all of these.
  PartId other_member(unsigned conditions) {
    const auto known = members_.find(conditions);
    if (known != members_.end()) return known->second;
    std::vector<PartId> branches;
    for (const Others& others : shape_.others) {
      Language names = intersect(others.names, undeclared_, sets_.work());
      SetId value = others.value;
      for (std::size_t i = 0; i < shape_.some.size(); ++i) {
        if ((conditions >> i) % 2 == 0) continue;
        names = intersect(names, shape_.some[i].names, sets_.work());
        value = sets_.both({value, shape_.some[i].value});
      }
      if (is_empty(names) || value == kNothing) continue;
      branches.push_back(rules_.sequence(
          {values_.texts().string(names), rules_.literal(":"), values_.blank(), values_.value(value)}));
    }
    return members_[conditions] = rules_.choice(branches);
  }

  // After the declared properties.
  PartId others(const State& at) {
    const unsigned missing = ((1U << shape_.some.size()) - 1) & ~at.met;
    const std::size_t needed = shape_.least > at.count && counts_ ? shape_.least - at.count : 0;
    if (needed > 1) return rules_.impossible();
    std::optional<std::size_t> room;
    if (shape_.most) room = *shape_.most - at.count;
    if (missing != 0) return last_meets(at, missing, room);
    if (room && *room < needed) return rules_.impossible();
    if (room && *room == 0) return rules_.nothing();
    const PartId member = other_member(0);
    const PartId next = rules_.sequence({values_.comma(), member});
    if (at.written) return rules_.repeat(next, needed, room);
    std::optional<std::size_t> more;
    if (room) more = *room - 1;
    const PartId some = rules_.sequence({member, rules_.repeat(next, 0, more)});
    return needed > 0 ? some : rules_.choice({rules_.nothing(), some});
  }

  PartId last_meets(const State& at, unsigned missing, std::optional<std::size_t> room) {
    if (room && *room == 0) return rules_.impossible();
    std::optional<std::size_t> before;
    if (room) before = *room - 1;
    const PartId any = rules_.sequence({other_member(0), values_.comma()});
    return rules_.sequence({separator(at.written), rules_.repeat(any, 0, before), other_member(missing)});
  }

  const ObjectShape& shape_;
  ValueRules& values_;
  Rules& rules_;
  Sets& sets_;
  bool counts_ = false;
  std::size_t last_count_ = 0;
  Language undeclared_;
  std::map<State, RuleId> named_;
  std::vector<std::pair<State, RuleId>> waiting_;
  bool writing_ = false;
  std::map<unsigned, PartId> members_;
};

}  // namespace

PartId object_part(const ObjectShape& shape, ValueRules& values) {
  Rules& rules = values.rules();
  return rules.sequence({rules.literal("{"), values.blank(), ObjectWriter(shape, values).members(),
                         values.blank(), rules.literal("}")});
}

}  // namespace thalweg::schema
