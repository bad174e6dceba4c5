#include "schema/sets.hpp"

#include <algorithm>
#include <unordered_set>

#include "schema/node_shapes.hpp"
#include "schema/numbers.hpp"
#include "schema/schema.hpp"
#include "schema/shapes.hpp"

namespace thalweg::schema {
namespace {

std::string canonical(const Decimal& number) {
  if (number.magnitude() > 400 || number.exponent < -400) throw TooLarge();
  return number.plain();
}

// In the order given, which becomes the order of properties.
std::vector<SetId> without_repeats(const std::vector<SetId>& sets) {
  std::vector<SetId> result;
  std::unordered_set<SetId> seen;
  for (const SetId set : sets) {
    if (seen.insert(set).second) result.push_back(set);
  }
  return result;
}

/// One value as a set.
ValueSet single(const Value& value, Sets& sets) {
  ValueSet result = no_value();
  if (value.as<std::nullptr_t>() != nullptr) {
    result.null = true;
  } else if (const auto* boolean = value.as<bool>()) {
    (*boolean ? result.yes : result.no) = true;
  } else if (const auto* number = value.as<Decimal>()) {
    result.numbers = words({canonical(*number)}, sets.work());
  } else if (const auto* text = value.as<std::string>()) {
    result.strings.push_back({words({*text}, sets.work()), 0, std::nullopt});
  } else if (const auto* array = value.as<Array>()) {
    ArrayShape shape;
    for (const Value& item : *array) shape.prefix.push_back(sets.of_value(item));
    shape.rest = kNothing;
    shape.least = array->size();
    shape.most = array->size();
    result.arrays.push_back(std::move(shape));
  } else {
    ObjectShape shape = every_object();
    shape.others.front().value = kNothing;
    for (const Member& member : *value.as<Object>())
      shape.properties.push_back({member.first, sets.of_value(member.second), true});
    result.objects.push_back(std::move(shape));
  }
  return result;
}

}  // namespace

/// Marks a set as being worked out.
class Sets::Opened {
 public:
  Opened(std::vector<Set>& sets, SetId set) : sets_(sets), set_(set) { sets_[set_].open = true; }
  ~Opened() { sets_[set_].open = false; }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

 private:
  std::vector<Set>& sets_;
  SetId set_;
};

Sets::Sets(const Document& document) : document_(document), work_(document.work) {
  intern(Kind::everything, {});
  intern(Kind::nothing, {});
}

Sets::~Sets() = default;

SetId Sets::intern(Kind kind, std::vector<std::uint32_t> parts) {
  std::vector<std::uint32_t> key = parts;
  std::sort(key.begin(), key.end());
  const auto [found, fresh] = names_.try_emplace({kind, std::move(key)}, static_cast<SetId>(sets_.size()));
  if (fresh) {
    if (sets_.size() >= SchemaLimits::sets) throw TooLarge();
    work_.spend(1 + parts.size());
    sets_.push_back({kind, std::move(parts)});
  }
  return found->second;
}

SetId Sets::of_node(NodeId id) {
  const Node& node = document_.nodes[id];
  if (node.always) return *node.always ? kEverything : kNothing;
  if (node.reference && only_refers(node)) return of_node(*node.reference);
  return says_nothing(node) ? kEverything : intern(Kind::node, {id});
}

SetId Sets::of_value(const Value& value) {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (values_[i] == &value) return intern(Kind::value, {static_cast<std::uint32_t>(i)});
  }
  values_.push_back(&value);
  return intern(Kind::value, {static_cast<std::uint32_t>(values_.size() - 1)});
}

SetId Sets::of_shapes(ValueSet set) {
  given_.push_back(std::move(set));
  return intern(Kind::shapes, {static_cast<std::uint32_t>(given_.size() - 1)});
}

SetId Sets::both(std::vector<SetId> sets) {
  std::vector<SetId> parts;
  for (const SetId set : sets) {
    if (set == kNothing) return kNothing;
    if (sets_[set].kind == Kind::both) {
      parts.insert(parts.end(), sets_[set].parts.begin(), sets_[set].parts.end());
    } else if (set != kEverything) {
      parts.push_back(set);
    }
  }
  parts = without_repeats(parts);
  for (const SetId part : parts) {
    const bool contradicts = sets_[part].kind == Kind::negation &&
                             std::find(parts.begin(), parts.end(), sets_[part].parts.front()) != parts.end();
    if (contradicts) return kNothing;
  }
  if (parts.empty()) return kEverything;
  return parts.size() == 1 ? parts.front() : intern(Kind::both, std::move(parts));
}

SetId Sets::either(std::vector<SetId> sets) {
  std::vector<SetId> parts;
  for (const SetId set : sets) {
    if (set == kEverything) return kEverything;
    if (sets_[set].kind == Kind::either) {
      parts.insert(parts.end(), sets_[set].parts.begin(), sets_[set].parts.end());
    } else if (set != kNothing) {
      parts.push_back(set);
    }
  }
  parts = without_repeats(parts);
  if (parts.empty()) return kNothing;
  return parts.size() == 1 ? parts.front() : intern(Kind::either, std::move(parts));
}

SetId Sets::negation(SetId set) {
  if (set == kEverything) return kNothing;
  if (set == kNothing) return kEverything;
  if (sets_[set].kind == Kind::negation) return sets_[set].parts.front();
  return intern(Kind::negation, {set});
}

const ValueSet& Sets::shapes(SetId set) {
  if (!sets_[set].shapes) {
    if (sets_[set].open) throw Cycle();
    const Opened opened(sets_, set);
    ValueSet result = work_out(set);
    sets_[set].shapes = std::make_unique<ValueSet>(std::move(result));
  }
  return *sets_[set].shapes;
}

ValueSet Sets::work_out(SetId set) {
  const std::vector<std::uint32_t> parts = sets_[set].parts;
  switch (sets_[set].kind) {
    case Kind::everything:
      return every_value();
    case Kind::nothing:
      return no_value();
    case Kind::node:
      return NodeShapes(document_, *this).of_node(parts.front());
    case Kind::own:
      return NodeShapes(document_, *this).of_own_keywords(parts.front());
    case Kind::value:
      return single(*values_[parts.front()], *this);
    case Kind::shapes:
      return given_[parts.front()];
    case Kind::negation:
      return complement(shapes(parts.front()), *this);
    case Kind::both: {
      ValueSet result = shapes(parts.front());
      for (std::size_t i = 1; i < parts.size(); ++i) result = intersect(result, shapes(parts[i]), *this);
      return result;
    }
    case Kind::either: {
      ValueSet result = no_value();
      for (const SetId part : parts) result = unite(std::move(result), shapes(part), *this);
      return result;
    }
  }
  return no_value();
}

bool Sets::is_empty(SetId set) {
  if (sets_[set].open) return false;  // not known yet
  if (!sets_[set].empty) {
    try {
      const ValueSet& all = shapes(set);
      const Opened opened(sets_, set);
      const bool empty = schema::is_empty(all, *this);
      sets_[set].empty = empty;
    } catch (const Cycle&) {
      return false;
    }
  }
  return *sets_[set].empty;
}

Language Sets::strings_of(SetId set) {
  Language result = no_strings();
  for (const StringShape& shape : shapes(set).strings) {
    Language language = shape.language;
    language = with_lengths(language, shape.least, shape.most, work_);
    result = unite(result, language, work_);
  }
  return result;
}

std::string Sets::path_of(SetId set) const {
  for (;;) {
    const Set& named = sets_[set];
    if (named.kind == Kind::node || named.kind == Kind::own) return document_.nodes[named.parts.front()].path;
    const bool made_of_sets =
        named.kind == Kind::both || named.kind == Kind::either || named.kind == Kind::negation;
    if (!made_of_sets) return "";
    set = named.parts.front();
  }
}

std::optional<std::vector<Value>> Sets::list_values(SetId set, std::size_t most) {
  const ValueSet& all = shapes(set);
  if (!all.arrays.empty() || !all.objects.empty()) return std::nullopt;
  std::vector<Value> values;
  if (all.null) values.push_back({nullptr});
  if (all.no) values.push_back({false});
  if (all.yes) values.push_back({true});
  const auto numbers = list_words(all.numbers, most);
  const auto strings = list_words(strings_of(set), most);
  if (!numbers || !strings) return std::nullopt;
  for (const std::string& number : *numbers) values.push_back({Decimal::parse(number)});
  for (const std::string& text : *strings) values.push_back({text});
  if (values.size() > most) return std::nullopt;
  return values;
}

}  // namespace thalweg::schema
