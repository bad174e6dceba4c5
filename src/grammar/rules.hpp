// From a constraint to the rules that are compiled.
#pragma once

#include <cstdint>
#include <string>

#include "grammar/constraint.hpp"

namespace thalweg::grammar {

/// A grammar in xgrammar's EBNF with the rule `root`. `markup_token` is the token in the middle of tool
/// markup (needed for tool_calls). Throws InputError naming the field of `constraint` that is refused.
std::string to_rules(const Constraint& constraint, std::int32_t markup_token);

/// What a message about it names: its `field`, or the name of its kind.
std::string subject_of(const Constraint& constraint);

}  // namespace thalweg::grammar
