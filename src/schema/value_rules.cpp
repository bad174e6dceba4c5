#include "schema/value_rules.hpp"

#include "schema/document.hpp"
#include "schema/numbers.hpp"
#include "schema/shapes.hpp"

namespace thalweg::schema {

ValueRules::ValueRules(Sets& sets, Whitespace whitespace) : sets_(sets), texts_(rules_) {
  if (whitespace == Whitespace::natural) {
    const PartId indent = rules_.repeat(rules_.literal(" "), 0, 32);
    blank_ = rules_.rule_of(rules_.choice(
        {rules_.nothing(), rules_.literal(" "), rules_.sequence({rules_.literal("\n"), indent})}));
  } else {
    blank_ = rules_.nothing();
  }
  comma_ = rules_.sequence({rules_.literal(","), blank_});
}

std::optional<std::string> ValueRules::text(SetId set, const std::string& root) {
  value(set);
  while (!waiting_.empty()) {
    const SetId next = waiting_.front();
    waiting_.pop_front();
    try {
      rules_.define(named_.at(next), body(next));
    } catch (const TooLarge&) {
      throw SchemaError("", sets_.path_of(next), "the grammar of this schema is too large");
    } catch (const Inexpressible& problem) {
      throw SchemaError(problem.keyword, sets_.path_of(next), "no grammar holds this combination");
    } catch (const Cycle&) {
      throw SchemaError("", sets_.path_of(next), "the schema is needed to work itself out");
    }
  }
  return rules_.text(named_.at(set), root);
}

PartId ValueRules::value(SetId set) {
  const auto [found, fresh] = named_.try_emplace(set, 0);
  if (fresh) {
    found->second = rules_.add_rule();
    waiting_.push_back(set);
  }
  return rules_.reference(found->second);
}

PartId ValueRules::numbers(const Language& language) {
  if (equal(language, all_numbers())) return texts_.any_number();
  const Language bounded = intersect(language, short_numbers(), sets_.work());
  return texts_.number(is_empty(bounded) ? language : bounded);
}

PartId ValueRules::body(SetId set) {
  const ValueSet& shapes = sets_.shapes(set);
  std::vector<PartId> branches;
  if (shapes.null) branches.push_back(rules_.literal("null"));
  if (shapes.yes) branches.push_back(rules_.literal("true"));
  if (shapes.no) branches.push_back(rules_.literal("false"));
  if (!is_empty(shapes.numbers)) branches.push_back(numbers(shapes.numbers));
  for (const StringShape& shape : shapes.strings) branches.push_back(texts_.string(shape));
  for (const ArrayShape& shape : shapes.arrays) branches.push_back(array_part(shape, *this));
  for (const ObjectShape& shape : shapes.objects) branches.push_back(object_part(shape, *this));
  return rules_.choice(branches);
}

std::string to_ebnf(const Schema& schema, const EbnfOptions& options) {
  try {
    Sets sets(schema.document());
    ValueRules values(sets, options.whitespace);
    const auto text = values.text(sets.of_node(0), options.root);
    if (!text) throw SchemaError("", "", "no value is valid for this schema");
    return *text;
  } catch (const TooLarge&) {
    throw SchemaError("", "", "the grammar of this schema is too large");
  }
}

}  // namespace thalweg::schema
