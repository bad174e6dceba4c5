#include "engine/sampling/stop_matcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sampling_rows.hpp"

namespace thalweg::engine {
namespace {

std::shared_ptr<const StopStrings> stops(std::vector<std::string> strings) {
  return std::make_shared<const StopStrings>(std::move(strings));
}

struct Outcome {
  std::string text;
  std::optional<std::size_t> stop;
  bool operator==(const Outcome&) const = default;
};

/// Looks at the whole text: the first end of any stop string, the longest of those that end there.
Outcome outcome_by_definition(const std::string& text, const std::vector<std::string>& strings,
                              bool include) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    Outcome outcome;
    std::size_t longest = 0;
    for (std::size_t i = 0; i < strings.size(); ++i) {
      const std::size_t size = strings[i].size();
      if (size <= longest || size > end || text.compare(end - size, size, strings[i]) != 0) continue;
      longest = size;
      outcome = {text.substr(0, include ? end : end - size), i};
    }
    if (outcome.stop) return outcome;
  }
  return {text, std::nullopt};
}

/// The longest end of `text` that begins a stop string (but is not all of it).
std::size_t held_by_definition(const std::string& text, const std::vector<std::string>& strings) {
  std::size_t held = 0;
  for (const std::string& string : strings) {
    for (std::size_t size = 1; size < string.size() && size <= text.size(); ++size) {
      if (text.compare(text.size() - size, size, string, 0, size) == 0) held = std::max(held, size);
    }
  }
  return held;
}

Outcome outcome_of(const std::vector<std::string>& pieces, const std::vector<std::string>& strings,
                   bool include) {
  StopMatcher matcher(stops(strings), include);
  Outcome outcome;
  for (const std::string& piece : pieces) {
    const StopMatcher::Shown shown = matcher.push(piece);
    outcome.text += shown.text;
    if (shown.stop) outcome.stop = shown.stop;
  }
  outcome.text += matcher.finish();
  return outcome;
}

std::string random_text(std::mt19937_64& random, std::size_t size, std::size_t letters) {
  std::string text(size, ' ');
  for (char& c : text) c = static_cast<char>('a' + testing::below(random, letters));
  return text;
}

TEST(StopMatcher, EqualsTheDefinitionForEverySplitIntoTwoAndForSingleBytes) {
  std::mt19937_64 random(51);
  for (int round = 0; round < 1500; ++round) {
    const std::string text = random_text(random, testing::below(random, 24), 2 + round % 2);
    std::vector<std::string> strings(1 + testing::below(random, 4));
    for (std::string& string : strings)
      string = random_text(random, 1 + testing::below(random, 6), 2 + round % 2);
    const bool include = round % 3 == 0;
    const Outcome expected = outcome_by_definition(text, strings, include);
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
      ASSERT_EQ(outcome_of({text.substr(0, cut), text.substr(cut)}, strings, include), expected)
          << text << " " << cut;
    }
    std::vector<std::string> bytes;
    for (const char c : text) bytes.emplace_back(1, c);
    ASSERT_EQ(outcome_of(bytes, strings, include), expected) << text;
  }
}

TEST(StopMatcher, EqualsTheDefinitionForEverySplitOfAShortText) {
  const std::string text = "abcababxab";
  const std::vector<std::string> strings = {"babx", "ca", "cabab"};
  for (const bool include : {false, true}) {
    const Outcome expected = outcome_by_definition(text, strings, include);
    for (std::uint32_t cuts = 0; cuts < 1U << (text.size() - 1); ++cuts) {
      std::vector<std::string> pieces(1);
      for (std::size_t i = 0; i < text.size(); ++i) {
        pieces.back() += text[i];
        if (cuts >> i & 1) pieces.emplace_back();
      }
      ASSERT_EQ(outcome_of(pieces, strings, include), expected) << cuts;
    }
  }
}

TEST(StopMatcher, HoldsBackExactlyWhatMayStillBecomeAStop) {
  std::mt19937_64 random(52);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> strings(1 + testing::below(random, 3));
    for (std::string& string : strings) string = random_text(random, 2 + testing::below(random, 6), 2);
    StopMatcher matcher(stops(strings));
    std::string text;
    std::string shown;
    for (int i = 0; i < 30 && !matcher.stopped(); ++i) {
      const std::string piece = random_text(random, testing::below(random, 3), 2);
      text += piece;
      shown += matcher.push(piece).text;
      if (matcher.stopped()) break;
      ASSERT_EQ(matcher.held(), held_by_definition(text, strings));
      ASSERT_EQ(shown, text.substr(0, text.size() - matcher.held()));
    }
  }
}

TEST(StopMatcher, TextThatCannotBeginAStopIsShownAtOnce) {
  StopMatcher matcher(stops({"\n\nUser:"}));
  EXPECT_EQ(matcher.push("Hello").text, "Hello");
  EXPECT_EQ(matcher.push(" there\n").text, " there");
  EXPECT_EQ(matcher.push("friend").text, "\nfriend");
}

TEST(StopMatcher, HeldTextIsDeliveredAtTheEnd) {
  StopMatcher matcher(stops({"<end>"}));
  EXPECT_EQ(matcher.push("2 <").text, "2 ");
  EXPECT_EQ(matcher.finish(), "<");
}

TEST(StopMatcher, StopInsideAPieceSaysHowManyBytesWereConsumed) {
  StopMatcher matcher(stops({"STOP"}));
  EXPECT_EQ(matcher.push("ab ST").text, "ab ");
  const StopMatcher::Shown shown = matcher.push("OP and more");
  EXPECT_EQ(shown.text, "");
  EXPECT_EQ(shown.stop, 0u);
  EXPECT_EQ(shown.consumed, 2u);
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.push("later").text, "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, TheStopThatEndsFirstWinsAndOfThoseTheLongest) {
  EXPECT_EQ(outcome_of({"xabcd"}, {"abcd", "bc"}, false), (Outcome{"xa", 1}));
  EXPECT_EQ(outcome_of({"xabc"}, {"c", "abc", "bc"}, false), (Outcome{"x", 1}));
}

TEST(StopMatcher, IncludedStopIsShownAndNothingBehindIt) {
  EXPECT_EQ(outcome_of({"one. t", "wo. three"}, {"two."}, true), (Outcome{"one. two.", 0}));
}

TEST(StopMatcher, CharactersCutBetweenPiecesMatch) {
  // U+793E U+533A and an emoji, byte by byte.
  const std::string text = "\xE7\xA4\xBE\xE5\x8C\xBA\xF0\x9F\x98\x80!";
  std::vector<std::string> bytes;
  for (const char c : text) bytes.emplace_back(1, c);
  EXPECT_EQ(outcome_of(bytes, {"\xF0\x9F\x98\x80"}, false), (Outcome{"\xE7\xA4\xBE\xE5\x8C\xBA", 0}));
  EXPECT_EQ(outcome_of(bytes, {"\xE5\x8C\xBB"}, false), (Outcome{text, std::nullopt}));
}

TEST(StopMatcher, ACopyTakenBeforeADraftGoesBack) {
  StopMatcher matcher(stops({"ab", "xyz"}));
  EXPECT_EQ(matcher.push("1x").text, "1");
  const StopMatcher checkpoint = matcher;
  EXPECT_EQ(matcher.push("yz").stop, 1u);
  matcher = checkpoint;
  EXPECT_EQ(matcher.push("y!").text, "xy!");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcher, UnarmedPiecesDoNotStopButMayBeginAStop) {
  StopMatcher matcher(stops({"ab", "abc", "cd"}));
  EXPECT_EQ(matcher.push("xab", false).text, "x");
  EXPECT_EQ(matcher.held(), 2u);
  EXPECT_EQ(matcher.push("c", false).text, "ab");
  EXPECT_EQ(matcher.held(), 1u);
  const StopMatcher::Shown shown = matcher.push("d");
  EXPECT_EQ(shown.stop, 2u);
  EXPECT_EQ(shown.text, "");
}

TEST(StopMatcher, WithoutStopStringsEverythingIsShownAtOnce) {
  StopMatcher matcher(nullptr);
  EXPECT_EQ(matcher.push("anything").text, "anything");
  EXPECT_EQ(StopMatcher(stops({})).push("at all").text, "at all");
}

TEST(StopMatcher, LongRepetitiveTextIsMatchedInLinearTime) {
  // Quadratic matching would take minutes.
  const std::string almost(20000, 'a');
  StopMatcher matcher(stops({almost + "b"}));
  std::string shown;
  for (int i = 0; i < 50; ++i) shown += matcher.push(almost).text;
  shown += matcher.finish();
  EXPECT_EQ(shown.size(), almost.size() * 50);
}

TEST(StopMatcher, EmptyAndTooManyStopStringsAreRefused) {
  EXPECT_THROW(stops({"a", ""}), InputError);
  EXPECT_THROW(stops(std::vector<std::string>(17, "a")), InputError);
}

}  // namespace
}  // namespace thalweg::engine
