// Random schemas, and random texts of their grammars.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "schema/recogniser.hpp"

namespace thalweg::testing {

/// A schema as JSON text, from keywords of every kind; some of them are refused or hold for nothing.
class RandomSchema {
 public:
  explicit RandomSchema(std::uint32_t seed) : random_(seed) {}

  std::string make(int depth = 3) {
    switch (below(depth > 0 ? 13 : 6)) {
      case 0:
        return pick({R"({"type":"null"})", R"({"type":"boolean"})", "true", R"({"type":["string","null"]})"});
      case 1:
        return integer();
      case 2:
        return number();
      case 3:
      case 4:
        return string();
      case 5:
        return pick({R"({"enum":["red","green","blue"]})", R"({"enum":[1,2.5,null,"x",[1],{"a":"b"}]})",
                     R"({"const":{"k":[true,"\n\"é"]}})", R"({"const":-12.75})"});
      case 6:
      case 7:
        return array(depth);
      case 8:
      case 9:
      case 10:
        return object(depth);
      case 11:
        return fmt::format(R"({{"{}":[{},{}]}})", pick({"anyOf", "oneOf", "allOf"}), make(depth - 1),
                           make(depth - 1));
      default:
        return fmt::format(R"({{"if":{},"then":{},"else":{}}})", make(depth - 2), make(depth - 1),
                           make(depth - 1));
    }
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint32_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  std::string pick(const std::vector<std::string>& list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))];
  }

  std::string integer() {
    std::string text = R"({"type":"integer")";
    const int low = below(400) - 200;
    if (chance(60)) text += fmt::format(R"(,"{}":{})", pick({"minimum", "exclusiveMinimum"}), low);
    if (chance(60))
      text += fmt::format(R"(,"{}":{})", pick({"maximum", "exclusiveMaximum"}), low + 2 + below(5000));
    if (chance(30)) text += fmt::format(R"(,"multipleOf":{})", 1 + below(30));
    return text + "}";
  }
  std::string number() {
    std::string text = R"({"type":"number")";
    const int low = below(4000) - 2000;
    if (chance(60))
      text += fmt::format(R"(,"{}":{}.{})", pick({"minimum", "exclusiveMinimum"}), low, below(1000));
    if (chance(60))
      text += fmt::format(R"(,"{}":{})", pick({"maximum", "exclusiveMaximum"}), low + 2 + below(100));
    if (chance(30)) text += fmt::format(R"(,"multipleOf":{})", pick({"0.5", "0.01", "0.25", "3", "1e1"}));
    return text + "}";
  }
  std::string string() {
    std::string text = R"({"type":"string")";
    if (chance(40)) {
      text += fmt::format(R"(,"pattern":"{}")", pick({"^[a-z]+$", "ab", "^a|b$", "^(?:[0-9]{2}-)*x$",
                                                      "[^a-z\\\\n]", "^\\\\w+ \\\\d{1,3}$", "^é.$"}));
    } else if (chance(30)) {
      text += fmt::format(R"(,"format":"{}")", pick({"date", "date-time", "time", "uuid", "ipv4", "ipv6",
                                                     "email", "hostname", "duration"}));
    }
    if (chance(30)) text += fmt::format(R"(,"minLength":{})", below(6));
    if (chance(30)) text += fmt::format(R"(,"maxLength":{})", 5 + below(20));
    return text + "}";
  }
  std::string array(int depth) {
    std::string text = R"({"type":"array")";
    if (chance(30)) text += fmt::format(R"(,"prefixItems":[{},{}])", make(depth - 1), make(depth - 1));
    if (chance(70)) text += fmt::format(R"(,"items":{})", chance(15) ? "false" : make(depth - 1));
    if (chance(20)) text += fmt::format(R"(,"contains":{},"minContains":{})", make(depth - 2), below(3));
    if (chance(40)) text += fmt::format(R"(,"minItems":{})", below(3));
    text += fmt::format(R"(,"maxItems":{})", 2 + below(3));
    if (chance(10)) text += R"(,"uniqueItems":true)";
    return text + "}";
  }
  std::string object(int depth) {
    std::string text = R"({"type":"object","properties":{)";
    const std::vector<std::string> names{"a", "name", "x_1", "a b", "é\\\"", "list"};
    const int count = 1 + below(4);
    for (int i = 0; i < count; ++i)
      text +=
          fmt::format(R"({}"{}":{})", i == 0 ? "" : ",", names[static_cast<std::size_t>(i)], make(depth - 1));
    text += "}";
    if (chance(60)) text += fmt::format(R"(,"required":["{}","{}"])", names[0], pick(names));
    if (chance(50))
      text += fmt::format(R"(,"additionalProperties":{})", chance(60) ? "false" : make(depth - 2));
    if (chance(15)) text += fmt::format(R"(,"patternProperties":{{"^x_":{}}})", make(depth - 2));
    if (chance(15)) text += R"(,"propertyNames":{"pattern":"^[a-zé_ \"1]*$"})";
    if (chance(15)) text += fmt::format(R"(,"minProperties":{})", below(4));
    if (chance(40)) text += fmt::format(R"(,"maxProperties":{})", 1 + below(4));
    if (chance(10)) text += R"(,"dependentRequired":{"name":["a"]})";
    if (chance(10)) text += fmt::format(R"(,"not":{})", make(depth - 2));
    if (chance(10)) text += R"(,"unevaluatedProperties":false)";
    return text + "}";
  }

  std::mt19937 random_;
};

/// A text of the grammar, byte by byte at random; nullopt if it did not end in time.
inline std::optional<std::string> random_text(const Recogniser& grammar, std::uint32_t seed) {
  constexpr std::size_t most = 600;
  std::mt19937 random(seed);
  ByteWalk walk(grammar);
  std::string text;
  while (text.size() < most) {
    if (walk.complete() && (random() % 3 == 0 || text.size() > most / 4)) return text;
    std::string choices;
    for (const unsigned char byte : walk.allowed()) {
      // Sooner or later what closes something.
      const bool closes = byte == '"' || byte == ']' || byte == '}';
      const std::size_t weight = closes ? 20 + text.size() / 4 : byte < 0x80 ? 2 : 1;
      choices.append(weight, static_cast<char>(byte));
    }
    if (choices.empty()) return walk.complete() ? std::optional(text) : std::nullopt;
    const char byte = choices[random() % choices.size()];
    walk.read(byte);
    text += byte;
  }
  return std::nullopt;
}

}  // namespace thalweg::testing
