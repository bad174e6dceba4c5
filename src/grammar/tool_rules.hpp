// The markup of tool calls as rules of a grammar.
#pragma once

#include <cstdint>
#include <string>

#include "grammar/constraint.hpp"

namespace thalweg::grammar {

/// A grammar with the rule `root` for a constraint of kind tool_calls: what follows the markup token that
/// opens a block, or the block's content if calls are required. A string argument is free text: only
/// `markup_token`, which no ordinary token spells, ends it. Throws InputError(`subject`...) for tools that
/// break GrammarLimits and for parameters whose schema is not supported, naming tool, argument and keyword.
std::string tool_rules(const Constraint& constraint, std::int32_t markup_token, const std::string& subject);

}  // namespace thalweg::grammar
