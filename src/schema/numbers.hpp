// Sets of numbers as regular languages of their canonical spelling: no exponent, no sign before zero, no zero
// that could be left out. Every number has one, so that sets of numbers and languages are the same thing.
#pragma once

#include "schema/automaton.hpp"
#include "schema/decimal.hpp"

namespace thalweg::schema {

const Language& all_numbers();
const Language& all_integers();
/// At most 20 digits before and 20 after the point: what is generated, so that no number goes on for ever.
const Language& short_numbers();

/// Numbers not below (`strict`: above) `bound`. Throws TooLarge for bounds of more than 40 places.
Language numbers_from(const Decimal& bound, bool strict, Work& work);
/// Numbers not above (`strict`: below) `bound`.
Language numbers_to(const Decimal& bound, bool strict, Work& work);
/// `divisor` is above 0 and has at most 18 digits. Throws TooLarge for divisors with many digits.
Language multiples_of(const Decimal& divisor, Work& work);

}  // namespace thalweg::schema
