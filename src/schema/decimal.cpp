#include "schema/decimal.hpp"

#include <algorithm>
#include <cstdlib>

namespace thalweg::schema {
namespace {

constexpr std::int64_t kMaxExponent = 100'000;

std::strong_ordering compare_magnitudes(const Decimal& a, const Decimal& b) {
  if (a.is_zero() || b.is_zero()) return !a.is_zero() <=> !b.is_zero();
  if (a.magnitude() != b.magnitude()) return a.magnitude() <=> b.magnitude();
  return a.digits.compare(b.digits) <=> 0;
}

std::int64_t read_exponent(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  std::int64_t value = 0;
  for (const char c : text) {
    if (c >= '0' && c <= '9') value = std::min<std::int64_t>(value * 10 + (c - '0'), kMaxExponent);
  }
  return negative ? -value : value;
}

}  // namespace

Decimal Decimal::parse(std::string_view text) {
  Decimal value;
  value.negative = !text.empty() && text.front() == '-';
  bool fraction = false;
  for (std::size_t i = value.negative ? 1 : 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.') {
      fraction = true;
    } else if (c == 'e' || c == 'E') {
      value.exponent += read_exponent(text.substr(i + 1));
      break;
    } else {
      if (!value.digits.empty() || c != '0') value.digits += c;
      if (fraction) --value.exponent;
    }
  }
  while (!value.digits.empty() && value.digits.back() == '0') {
    value.digits.pop_back();
    ++value.exponent;
  }
  if (value.digits.empty()) return {};
  return value;
}

std::string Decimal::plain() const {
  if (is_zero()) return "0";
  std::string text = negative ? "-" : "";
  const std::int64_t whole = magnitude();
  if (exponent >= 0) return text + digits + std::string(static_cast<std::size_t>(exponent), '0');
  if (whole <= 0) return text + "0." + std::string(static_cast<std::size_t>(-whole), '0') + digits;
  return text + digits.substr(0, static_cast<std::size_t>(whole)) + "." +
         digits.substr(static_cast<std::size_t>(whole));
}

std::strong_ordering Decimal::operator<=>(const Decimal& other) const {
  if (negative != other.negative)
    return negative ? std::strong_ordering::less : std::strong_ordering::greater;
  return negative ? compare_magnitudes(other, *this) : compare_magnitudes(*this, other);
}

std::optional<std::int64_t> to_integer(const Decimal& value) {
  if (!value.is_integer() || value.magnitude() > 18) return std::nullopt;
  return std::strtoll(value.plain().c_str(), nullptr, 10);
}

std::optional<bool> is_multiple(const Decimal& value, const Decimal& divisor) {
  if (divisor.digits.size() > 18) return std::nullopt;
  if (value.is_zero()) return true;
  // value = a * 10^e and divisor = b * 10^f with a and b not divisible by 10: below f no multiple is left.
  if (value.exponent < divisor.exponent) return false;
  const auto modulus = static_cast<unsigned __int128>(std::strtoull(divisor.digits.c_str(), nullptr, 10));
  unsigned __int128 rest = 0;
  for (const char c : value.digits) rest = (rest * 10 + static_cast<unsigned>(c - '0')) % modulus;
  for (std::int64_t i = value.exponent - divisor.exponent; i > 0 && rest != 0; --i)
    rest = rest * 10 % modulus;
  return rest == 0;
}

}  // namespace thalweg::schema
