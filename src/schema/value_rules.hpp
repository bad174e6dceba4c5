// Grammar rules for the sets of a document.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "schema/rules.hpp"
#include "schema/schema.hpp"
#include "schema/sets.hpp"
#include "schema/text_rules.hpp"

namespace thalweg::schema {

class ValueRules {
 public:
  ValueRules(Sets& sets, Whitespace whitespace);

  /// Rules for `set` and everything inside it. Throws SchemaError.
  std::optional<std::string> text(SetId set, const std::string& root);

  /// The rule of a set; it is written later.
  PartId value(SetId set);
  PartId blank() const { return blank_; }
  PartId comma() const { return comma_; }
  Sets& sets() { return sets_; }
  Rules& rules() { return rules_; }
  TextRules& texts() { return texts_; }

 private:
  PartId body(SetId set);
  PartId numbers(const Language& language);

  Sets& sets_;
  Rules rules_;
  TextRules texts_;
  PartId blank_ = 0;
  PartId comma_ = 0;
  std::map<SetId, RuleId> named_;
  std::deque<SetId> waiting_;
};

/// Everything from '[' to ']' and from '{' to '}'.
PartId array_part(const ArrayShape& shape, ValueRules& values);
PartId object_part(const ObjectShape& shape, ValueRules& values);

}  // namespace thalweg::schema
