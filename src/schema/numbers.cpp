#include "schema/numbers.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "schema/regex.hpp"
#include "schema/schema.hpp"

namespace thalweg::schema {
namespace {

constexpr std::int64_t kPlaces = 40;

Language fixed(std::string_view regex) {
  Work work(SchemaLimits::work);
  return search_language(regex, work);
}

// An expression for the spellings of numbers above 0 that are above `bound`, which is not below 0; with
// `equal` also those equal to it. It may match more than canonical spellings.
std::string above(const Decimal& bound, bool equal) {
  const std::string text = bound.plain();
  const std::size_t point = text.find('.');
  const std::string whole = text.substr(0, point);
  const std::string fraction = point == std::string::npos ? "" : text.substr(point + 1);
  const std::string any_fraction = "(?:\\.[0-9]+)?";
  std::string regex = fmt::format("[1-9][0-9]{{{},}}{}", whole.size(), any_fraction);  // more digits
  const auto higher = [](char digit) { return fmt::format("[{}-9]", static_cast<char>(digit + 1)); };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] == '9') continue;
    regex += fmt::format("|{}{}[0-9]{{{}}}{}", whole.substr(0, i), higher(whole[i]), whole.size() - 1 - i,
                         any_fraction);
  }
  for (std::size_t i = 0; i < fraction.size(); ++i) {
    if (fraction[i] == '9') continue;
    regex += fmt::format("|{}\\.{}{}[0-9]*", whole, fraction.substr(0, i), higher(fraction[i]));
  }
  regex +=
      fraction.empty() ? fmt::format("|{}\\.[0-9]+", whole) : fmt::format("|{}\\.{}[0-9]+", whole, fraction);
  if (equal) regex += fraction.empty() ? "|" + whole : fmt::format("|{}\\.{}", whole, fraction);
  return regex;
}

Language of_spelling(const std::string& regex, Work& work) {
  return intersect(search_language(fmt::format("^(?:{})$", regex), work), all_numbers(), work);
}

Language without(const Language& a, const Language& b, Work& work) {
  return intersect(a, complement(b), work);
}

}  // namespace

const Language& all_numbers() {
  static const Language language = fixed(R"(^(?:0|-?[1-9][0-9]*(?:\.[0-9]*[1-9])?|-?0\.[0-9]*[1-9])$)");
  return language;
}

const Language& all_integers() {
  static const Language language = fixed("^(?:0|-?[1-9][0-9]*)$");
  return language;
}

const Language& short_numbers() {
  static const Language language = fixed(R"(^-?[0-9]{1,20}(?:\.[0-9]{1,20})?$)");
  return language;
}

Language numbers_from(const Decimal& bound, bool strict, Work& work) {
  if (!bound.is_zero() && (bound.magnitude() > kPlaces || bound.exponent < -kPlaces)) throw TooLarge();
  if (!bound.negative) return of_spelling(above(bound, !strict), work);
  Decimal opposite = bound;
  opposite.negative = false;
  return without(all_numbers(), of_spelling(fmt::format("-(?:{})", above(opposite, strict)), work), work);
}

Language numbers_to(const Decimal& bound, bool strict, Work& work) {
  return without(all_numbers(), numbers_from(bound, !strict, work), work);
}

Language multiples_of(const Decimal& divisor, Work& work) {
  enum : std::uint64_t { begin, signed_begin, whole, fraction, dead, phases };
  const std::uint64_t places = divisor.exponent < 0 ? static_cast<std::uint64_t>(-divisor.exponent) : 0;
  if (divisor.magnitude() > 18 || places > static_cast<std::uint64_t>(kPlaces)) throw TooLarge();
  std::uint64_t modulus = std::strtoull(divisor.digits.c_str(), nullptr, 10);
  for (std::int64_t i = 0; i < divisor.exponent; ++i) modulus *= 10;
  if (modulus > SchemaLimits::states || modulus * (places + 1) > SchemaLimits::states) throw TooLarge();

  // A state is a phase, the rest so far and the number of digits after the point.
  const auto state = [&](std::uint64_t phase, std::uint64_t rest, std::uint64_t digits) {
    return phase + phases * (rest + modulus * digits);
  };
  const auto step = [&](std::uint64_t from, char32_t c) -> std::uint64_t {
    const std::uint64_t phase = from % phases;
    const std::uint64_t rest = from / phases % modulus;
    const std::uint64_t digits = from / phases / modulus;
    if (c == '-' && phase == begin) return signed_begin;
    if (c == '.' && phase == whole) return state(fraction, rest, 0);
    if (c < '0' || c > '9' || phase == dead) return dead;
    const std::uint64_t next = (rest * 10 + (c - '0')) % modulus;
    if (phase != fraction) return state(whole, next, 0);
    return digits < places ? state(fraction, next, digits + 1) : dead;
  };
  const auto accepts = [&](std::uint64_t from) {
    const std::uint64_t phase = from % phases;
    std::uint64_t rest = from / phases % modulus;
    for (std::uint64_t digits = from / phases / modulus; digits < places; ++digits)
      rest = rest * 10 % modulus;
    return (phase == whole || phase == fraction) && rest == 0;
  };
  std::vector<char32_t> starts{0, '-', '.', '/'};
  for (char32_t c = '0'; c <= ':'; ++c) starts.push_back(c);
  return intersect(explore(starts, step, accepts, work), all_numbers(), work);
}

}  // namespace thalweg::schema
