// Exact decimal numbers, as JSON spells them.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace thalweg::schema {

/// (-1)^negative * digits * 10^exponent, where `digits` has no leading and no trailing zero and is empty for
/// zero: equal numbers have equal members.
struct Decimal {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;

  /// `text` must be a JSON number. Exponents beyond +-100,000 are clamped.
  static Decimal parse(std::string_view text);

  bool is_zero() const { return digits.empty(); }
  bool is_integer() const { return exponent >= 0; }
  /// Position of the first digit: the number is below 10^magnitude and not below 10^(magnitude-1).
  std::int64_t magnitude() const { return exponent + static_cast<std::int64_t>(digits.size()); }
  /// Without exponent, e.g. "-120", "0.05". Meant for magnitudes that can be written out.
  std::string plain() const;

  bool operator==(const Decimal&) const = default;
  std::strong_ordering operator<=>(const Decimal& other) const;
};

/// The integer value, if it is one of at most 18 digits.
std::optional<std::int64_t> to_integer(const Decimal& value);

/// Whether value / divisor is an integer. nullopt if `divisor` has more than 18 significant digits.
std::optional<bool> is_multiple(const Decimal& value, const Decimal& divisor);

}  // namespace thalweg::schema
