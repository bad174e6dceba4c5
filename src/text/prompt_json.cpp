#include "text/prompt_json.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "text/json_escape.hpp"

namespace thalweg::text {
namespace {

void append_string(std::string& out, std::string_view text) {
  out += '"';
  append_json_escaped(out, text);
  out += '"';
}

void append_integer(std::string& out, std::int64_t value) {
  // The parser reads "0" as unsigned, so a signed zero was spelled "-0".
  if (value == 0) {
    out += "-0.0";
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);
  }
}

}  // namespace

void append_prompt_number(std::string& out, double value) {
  std::array<char, 32> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific).ptr;
  std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));  // [-]d[.ddd]e[+-]dd
  if (text.front() == '-') {
    out += '-';
    text.remove_prefix(1);
  }
  const std::size_t e = text.find('e');
  const int exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  std::string digits(1, text.front());
  if (e > 2) digits += text.substr(2, e - 2);

  if (exponent < -4 || exponent >= 16) {
    out += digits.front();
    if (digits.size() > 1) out.append(1, '.').append(digits, 1);
    fmt::format_to(std::back_inserter(out), "e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  } else if (exponent < 0) {
    out.append("0.").append(static_cast<std::size_t>(-exponent - 1), '0').append(digits);
  } else {
    const auto whole = static_cast<std::size_t>(exponent) + 1;
    if (digits.size() <= whole) digits.append(whole - digits.size() + 1, '0');
    out.append(digits, 0, whole).append(1, '.').append(digits, whole);
  }
}

void append_prompt_json(std::string& out, const Json& value) {
  using Type = Json::value_t;
  std::string_view separator;
  switch (value.type()) {
    case Type::object:
      out += '{';
      for (const auto& [key, member] : value.items()) {
        out += separator;
        append_string(out, key);
        out += ": ";
        append_prompt_json(out, member);
        separator = ", ";
      }
      out += '}';
      break;
    case Type::array:
      out += '[';
      for (const Json& element : value) {
        out += separator;
        append_prompt_json(out, element);
        separator = ", ";
      }
      out += ']';
      break;
    case Type::string:
      append_string(out, value.get_ref<const std::string&>());
      break;
    case Type::boolean:
      out += value.get<bool>() ? "true" : "false";
      break;
    case Type::number_integer:
      append_integer(out, value.get<std::int64_t>());
      break;
    case Type::number_unsigned:
      fmt::format_to(std::back_inserter(out), "{}", value.get<std::uint64_t>());
      break;
    case Type::number_float:
      append_prompt_number(out, value.get<double>());
      break;
    default:  // null; parse_json makes no other type
      out += "null";
  }
}

std::string prompt_json(const Json& value) {
  std::string out;
  append_prompt_json(out, value);
  return out;
}

}  // namespace thalweg::text
