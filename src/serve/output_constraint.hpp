// What a request of the API asks of its output, as the engine takes it.
#pragma once

#include <optional>

#include "grammar/constraint.hpp"
#include "text/special_tokens.hpp"
#include "wire/request.hpp"

namespace thalweg::serve {

/// Response formats hold for what follows the reasoning; tools for the block of calls, arguments of strict
/// tools with their schema. `format_field` names the response format in errors.
std::optional<grammar::Constraint> output_constraint(const wire::Request& request,
                                                     const text::SpecialTokens& specials,
                                                     const char* format_field);

}  // namespace thalweg::serve
