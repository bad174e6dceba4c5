#include "schema/node_shapes.hpp"

#include <algorithm>

#include "schema/numbers.hpp"
#include "schema/schema.hpp"
#include "schema/shapes.hpp"

namespace thalweg::schema {
namespace {

bool has_own_keywords(const Node& node) {
  return node.always || node.types != kAllTypes || node.enumeration || node.constant || node.minimum ||
         node.maximum || node.exclusive_minimum || node.exclusive_maximum || node.multiple_of ||
         node.min_length > 0 || node.max_length || node.pattern || node.format ||
         !node.prefix_items.empty() || node.items || node.contains || node.min_items > 0 || node.max_items ||
         node.unique_items || !node.properties.empty() || !node.pattern_properties.empty() ||
         node.additional_properties || node.property_names || !node.required.empty() ||
         node.min_properties > 0 || node.max_properties || !node.dependent_required.empty();
}

bool has_unevaluated(const Node& node) {
  return node.unevaluated_items || node.unevaluated_properties;
}

}  // namespace

bool only_refers(const Node& node) {
  return node.reference && node.in_place().size() == 1 && !has_own_keywords(node) && !has_unevaluated(node);
}

bool says_nothing(const Node& node) {
  return node.in_place().empty() && !has_own_keywords(node) && !has_unevaluated(node);
}

template <class Operation>
auto NodeShapes::guarded(const char* keyword, const Node& node, const Operation& operation) {
  try {
    return operation();
  } catch (const TooLarge&) {
    throw SchemaError(keyword, node.path, "the combination with the keywords around it is too large");
  } catch (const Inexpressible& problem) {
    throw SchemaError(problem.keyword, node.path, fmt::format("cannot be combined with \"{}\"", keyword));
  }
}

Language NodeShapes::numbers_of(const Node& node) {
  if ((node.types & (kNumber | kInteger)) == 0) return no_strings();
  Language numbers = (node.types & kNumber) != 0 ? all_numbers() : all_integers();
  const auto restrict = [&](const char* keyword, const std::optional<Decimal>& bound, const auto& language) {
    if (!bound) return;
    numbers = guarded(keyword, node, [&] { return intersect(numbers, language(*bound), sets_.work()); });
  };
  Work& work = sets_.work();
  restrict("minimum", node.minimum, [&](const Decimal& bound) { return numbers_from(bound, false, work); });
  restrict("maximum", node.maximum, [&](const Decimal& bound) { return numbers_to(bound, false, work); });
  restrict("exclusiveMinimum", node.exclusive_minimum,
           [&](const Decimal& bound) { return numbers_from(bound, true, work); });
  restrict("exclusiveMaximum", node.exclusive_maximum,
           [&](const Decimal& bound) { return numbers_to(bound, true, work); });
  restrict("multipleOf", node.multiple_of,
           [&](const Decimal& divisor) { return multiples_of(divisor, work); });
  return numbers;
}

StringShape NodeShapes::strings_of(const Node& node) {
  if (!node.pattern && !node.format) return {all_strings(), node.min_length, node.max_length};
  return guarded(node.pattern ? "pattern" : "format", node, [&]() -> StringShape {
    Language language = node.pattern.value_or(all_strings());
    if (node.format) language = intersect(language, *node.format, sets_.work());
    return {with_lengths(language, node.min_length, node.max_length, sets_.work()), 0, std::nullopt};
  });
}

ArrayShape NodeShapes::arrays_of(const Node& node) {
  ArrayShape shape;
  for (const NodeId item : node.prefix_items) shape.prefix.push_back(sets_.of_node(item));
  if (node.items) shape.rest = sets_.of_node(*node.items);
  shape.least = node.min_items;
  shape.most = node.max_items;
  shape.unique = node.unique_items ? &node : nullptr;
  if (node.contains)
    shape.counted.push_back({sets_.of_node(*node.contains), 0, node.min_contains, node.max_contains});
  return shape;
}

// What a member may be whose name is declared (`declared` is its schema) or stands only in a list of names.
SetId NodeShapes::value_by_pattern(const Node& node, std::string_view name, SetId declared) {
  std::vector<SetId> sets{declared};
  bool matched = declared != kEverything;
  for (const NamedNode& property : node.properties) matched = matched || property.name == name;
  for (const PatternNode& pattern : node.pattern_properties) {
    if (!contains(pattern.names, name)) continue;
    matched = true;
    sets.push_back(sets_.of_node(pattern.node));
  }
  if (!matched && node.additional_properties) sets.push_back(sets_.of_node(*node.additional_properties));
  return sets_.both(std::move(sets));
}

// All names, parted by the patterns they match.
std::vector<Others> NodeShapes::others_of(const Node& node) {
  struct Part {
    Language names;
    std::vector<SetId> values;
  };
  std::vector<Part> parts{{all_strings(), {}}};
  for (const PatternNode& pattern : node.pattern_properties) {
    std::vector<Part> finer;
    for (const Part& part : parts) {
      Part inside{intersect(part.names, pattern.names, sets_.work()), part.values};
      Part outside{intersect(part.names, complement(pattern.names), sets_.work()), part.values};
      inside.values.push_back(sets_.of_node(pattern.node));
      if (!is_empty(inside.names)) finer.push_back(std::move(inside));
      if (!is_empty(outside.names)) finer.push_back(std::move(outside));
    }
    parts = std::move(finer);
    if (parts.size() > SchemaLimits::shapes) throw TooLarge();
  }
  const SetId additional =
      node.additional_properties ? sets_.of_node(*node.additional_properties) : kEverything;
  std::vector<Others> others;
  for (Part& part : parts)
    others.push_back({part.names, part.values.empty() ? additional : sets_.both(part.values)});
  return others;
}

Language NodeShapes::names_in(SetId set) {
  try {
    return sets_.strings_of(set);
  } catch (const Cycle&) {
    throw Inexpressible{"propertyNames"};
  }
}

ObjectShape NodeShapes::objects_of(const Node& node) {
  ObjectShape shape;
  shape.origin = &node;
  shape.least = node.min_properties;
  shape.most = node.max_properties;
  for (const NamedNode& property : node.properties)
    shape.properties.push_back(
        {property.name, value_by_pattern(node, property.name, sets_.of_node(property.node)), false});
  for (const std::string& name : node.required) {
    const auto known = std::find_if(shape.properties.begin(), shape.properties.end(),
                                    [&](const Property& property) { return property.name == name; });
    if (known != shape.properties.end()) {
      known->required = true;
    } else {
      shape.properties.push_back({name, value_by_pattern(node, name, kEverything), true});
    }
  }
  shape.others = guarded("patternProperties", node, [&] { return others_of(node); });
  if (!node.property_names) return shape;
  return guarded("propertyNames", node, [&] {
    const Language names = names_in(sets_.of_node(*node.property_names));
    for (Property& property : shape.properties) {
      if (!contains(names, property.name)) property.value = kNothing;
    }
    std::vector<Others> others{{complement(names), kNothing}};
    for (const Others& part : shape.others) {
      Language inside = intersect(part.names, names, sets_.work());
      if (!is_empty(inside)) others.push_back({std::move(inside), part.value});
    }
    shape.others = std::move(others);
    return shape;
  });
}

SetId NodeShapes::listed(const Node& node) {
  SetId set = kEverything;
  if (node.constant) set = sets_.of_value(*node.constant);
  if (!node.enumeration) return set;
  std::vector<std::string> strings;
  std::vector<SetId> rest;
  for (const Value& value : *node.enumeration) {
    if (const auto* text = value.as<std::string>()) {
      strings.push_back(*text);
    } else {
      rest.push_back(sets_.of_value(value));
    }
  }
  if (!strings.empty()) {
    ValueSet all = no_value();
    all.strings.push_back({words(std::move(strings), sets_.work()), 0, std::nullopt});
    rest.push_back(sets_.of_shapes(std::move(all)));
  }
  return sets_.both({set, sets_.either(std::move(rest))});
}

SetId NodeShapes::objects_with(const std::string& name, bool present) {
  ValueSet set = every_value();
  set.objects.front().properties.push_back({name, present ? kEverything : kNothing, present});
  return sets_.of_shapes(std::move(set));
}

void NodeShapes::restrict_dependent(ValueSet& set, const Node& node) {
  for (const auto& [name, needed] : node.dependent_required) {
    if (needed.empty()) continue;
    std::vector<SetId> present;
    for (const std::string& other : needed) present.push_back(objects_with(other, true));
    const SetId allowed = sets_.either({objects_with(name, false), sets_.both(std::move(present))});
    set = intersect(set, sets_.shapes(allowed), sets_);
  }
}

ValueSet NodeShapes::of_own_keywords(NodeId id) {
  const Node& node = document_.nodes[id];
  ValueSet set = no_value();
  set.null = (node.types & kNull) != 0;
  set.no = set.yes = (node.types & kBoolean) != 0;
  set.numbers = numbers_of(node);
  if ((node.types & kString) != 0) set.strings.push_back(strings_of(node));
  if ((node.types & kArray) != 0) set.arrays.push_back(arrays_of(node));
  if ((node.types & kObject) != 0) set.objects.push_back(objects_of(node));
  guarded("dependentRequired", node, [&] { restrict_dependent(set, node); });
  return guarded(node.constant ? "const" : "enum", node, [&] {
    const SetId values = listed(node);
    return values == kEverything ? set : intersect(set, sets_.shapes(values), sets_);
  });
}

// Branches that share no value need not exclude each other.
SetId NodeShapes::exactly_one(const Node& node) {
  std::vector<SetId> sets;
  for (const NodeId id : node.one_of) sets.push_back(sets_.of_node(id));
  std::vector<SetId> result;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    std::vector<SetId> parts{sets[i]};
    for (std::size_t j = 0; j < sets.size(); ++j) {
      if (i != j && !sets_.is_empty(sets_.both({sets[i], sets[j]}))) parts.push_back(sets_.negation(sets[j]));
    }
    result.push_back(sets_.both(std::move(parts)));
  }
  return sets_.either(std::move(result));
}

SetId NodeShapes::dependent(const NamedNode& next) {
  return sets_.either({objects_with(next.name, false), sets_.of_node(next.node), sets_.negation([&] {
                         ValueSet objects = no_value();
                         objects.objects.push_back(every_object());
                         return sets_.of_shapes(std::move(objects));
                       }())});
}

SetId NodeShapes::in_place(const Node& node) {
  std::vector<SetId> sets;
  if (node.reference) sets.push_back(sets_.of_node(*node.reference));
  for (const NodeId id : node.all_of) sets.push_back(sets_.of_node(id));
  if (!node.any_of.empty()) {
    std::vector<SetId> any;
    for (const NodeId id : node.any_of) any.push_back(sets_.of_node(id));
    sets.push_back(sets_.either(std::move(any)));
  }
  if (!node.one_of.empty()) sets.push_back(guarded("oneOf", node, [&] { return exactly_one(node); }));
  if (node.negated) sets.push_back(sets_.negation(sets_.of_node(*node.negated)));
  if (node.condition) {
    const SetId condition = sets_.of_node(*node.condition);
    const SetId then = node.consequence ? sets_.of_node(*node.consequence) : kEverything;
    const SetId otherwise = node.alternative ? sets_.of_node(*node.alternative) : kEverything;
    if (then != kEverything || otherwise != kEverything)
      sets.push_back(
          sets_.either({sets_.both({condition, then}), sets_.both({sets_.negation(condition), otherwise})}));
  }
  for (const NamedNode& next : node.dependent_schemas) sets.push_back(dependent(next));
  return sets_.both(std::move(sets));
}

ValueSet NodeShapes::of_node(NodeId id) {
  const Node& node = document_.nodes[id];
  const char* keyword = "allOf";
  if (!node.any_of.empty()) keyword = "anyOf";
  if (!node.one_of.empty()) keyword = "oneOf";
  if (node.condition) keyword = "if";
  if (node.negated) keyword = "not";
  if (node.reference) keyword = "$ref";
  if (node.unevaluated_items) keyword = "unevaluatedItems";
  if (node.unevaluated_properties) keyword = "unevaluatedProperties";
  return guarded(keyword, node, [&] {
    if (has_unevaluated(node)) {
      std::vector<SetId> sets;
      for (const Way& way : ways(id)) sets.push_back(way.set);
      return sets_.shapes(sets_.either(std::move(sets)));
    }
    const SetId others = in_place(node);
    if (!has_own_keywords(node)) return sets_.shapes(others);
    const ValueSet own = of_own_keywords(id);
    return others == kEverything ? own : intersect(own, sets_.shapes(others), sets_);
  });
}

NodeShapes::Way NodeShapes::own_way(const Node& node, NodeId id) {
  Way way;
  way.set = has_own_keywords(node) ? sets_.own_keywords(id) : kEverything;
  way.members = no_strings();
  std::vector<std::string> names;
  for (const NamedNode& property : node.properties) names.push_back(property.name);
  if (!names.empty()) way.members = words(std::move(names), sets_.work());
  for (const PatternNode& pattern : node.pattern_properties)
    way.members = unite(way.members, pattern.names, sets_.work());
  if (node.additional_properties) way.members = all_strings();
  way.items = node.prefix_items.size();
  way.all_items = node.items.has_value();
  if (node.contains) way.found.push_back(sets_.of_node(*node.contains));
  return way;
}

std::vector<NodeShapes::Way> NodeShapes::joined(const std::vector<Way>& a, const std::vector<Way>& b) {
  std::vector<Way> result;
  for (const Way& x : a) {
    for (const Way& y : b) {
      Way way{sets_.both({x.set, y.set}), unite(x.members, y.members, sets_.work()),
              std::max(x.items, y.items), x.all_items || y.all_items, x.found};
      way.found.insert(way.found.end(), y.found.begin(), y.found.end());
      if (way.set == kNothing) continue;
      if (result.size() >= SchemaLimits::shapes) throw TooLarge();
      result.push_back(std::move(way));
    }
  }
  return result;
}

// Every choice of branches that hold, the others being excluded.
std::vector<NodeShapes::Way> NodeShapes::any_branches(const Node& node) {
  struct Partial {
    std::vector<Way> ways;
    bool any;
  };
  const Way neutral{kEverything, no_strings(), 0, false, {}};
  std::vector<Partial> partial{{{neutral}, false}};
  for (const NodeId id : node.any_of) {
    Way excluded = neutral;
    excluded.set = sets_.negation(sets_.of_node(id));
    std::vector<Partial> next;
    for (const Partial& part : partial) {
      next.push_back({joined(part.ways, ways(id)), true});
      next.push_back({joined(part.ways, {excluded}), part.any});
    }
    if (next.size() > SchemaLimits::shapes) throw TooLarge();
    partial = std::move(next);
  }
  std::vector<Way> result;
  for (const Partial& part : partial) {
    if (part.any) result.insert(result.end(), part.ways.begin(), part.ways.end());
  }
  return result;
}

// The ways of the schemas that apply to the same value.
std::vector<NodeShapes::Way> NodeShapes::branches(const Node& node) {
  const Way neutral{kEverything, no_strings(), 0, false, {}};
  const auto with = [&](std::vector<Way> list, SetId set) {
    Way condition = neutral;
    condition.set = set;
    return joined(list, {condition});
  };
  const auto append = [](std::vector<Way>& to, const std::vector<Way>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  std::vector<Way> all{neutral};
  if (node.reference) all = joined(all, ways(*node.reference));
  for (const NodeId id : node.all_of) all = joined(all, ways(id));
  if (!node.any_of.empty()) all = joined(all, any_branches(node));
  if (!node.one_of.empty()) {
    std::vector<Way> one;
    for (const NodeId id : node.one_of) {
      std::vector<SetId> others;
      for (const NodeId other : node.one_of) {
        if (other != id) others.push_back(sets_.negation(sets_.of_node(other)));
      }
      append(one, with(ways(id), sets_.both(std::move(others))));
    }
    all = joined(all, one);
  }
  if (node.negated) all = with(all, sets_.negation(sets_.of_node(*node.negated)));
  if (node.condition) {
    std::vector<Way> then = ways(*node.condition);
    if (node.consequence) then = joined(then, ways(*node.consequence));
    std::vector<Way> otherwise = with({neutral}, sets_.negation(sets_.of_node(*node.condition)));
    if (node.alternative) otherwise = joined(otherwise, ways(*node.alternative));
    append(then, otherwise);
    all = joined(all, then);
  }
  for (const NamedNode& next : node.dependent_schemas) {
    const SetId absent = objects_with(next.name, false);
    std::vector<Way> either = with(ways(next.node), sets_.negation(absent));
    append(either, with({neutral}, absent));
    all = joined(all, either);
  }
  return all;
}

NodeShapes::Way NodeShapes::with_unevaluated(Way way, const Node& node) {
  ValueSet rest = every_value();
  if (node.unevaluated_properties) {
    ObjectShape& shape = rest.objects.front();
    shape.others = {{complement(way.members), sets_.of_node(*node.unevaluated_properties)},
                    {way.members, kEverything}};
    way.members = all_strings();
  }
  if (node.unevaluated_items && !way.all_items) {
    ArrayShape& shape = rest.arrays.front();
    shape.prefix.assign(way.items, kEverything);
    std::vector<SetId> allowed = way.found;
    allowed.push_back(sets_.of_node(*node.unevaluated_items));
    shape.rest = sets_.either(std::move(allowed));
    way.all_items = true;
  }
  way.set = sets_.both({way.set, sets_.of_shapes(std::move(rest))});
  return way;
}

std::vector<NodeShapes::Way> NodeShapes::ways(NodeId id) {
  const Node& node = document_.nodes[id];
  Way own = own_way(node, id);
  if (node.always) {
    own.set = *node.always ? kEverything : kNothing;
    return {own};
  }
  std::vector<Way> all = joined({own}, branches(node));
  if (!has_unevaluated(node)) return all;
  for (Way& way : all) way = with_unevaluated(std::move(way), node);
  return all;
}

}  // namespace thalweg::schema
