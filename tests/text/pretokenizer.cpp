#include "text/pretokenizer.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "support/random_text.hpp"
#include "support/text_data.hpp"
#include "text/unicode_classes.hpp"

namespace thalweg::text {
namespace {

using Pieces = std::vector<std::string>;

Pieces split(std::string_view text) {
  Pieces pieces;
  Pretokenizer walk(text);
  for (std::string_view piece = walk.next(); !piece.empty(); piece = walk.next()) pieces.emplace_back(piece);
  return pieces;
}

TEST(Pretokenizer, SplitsDigitsInGroupsOfThree) {
  EXPECT_EQ(split("1234567"), (Pieces{"123", "456", "7"}));
  EXPECT_EQ(split("x12"), (Pieces{"x", "12"}));
  EXPECT_EQ(split("٣٤٥²Ⅷ"), (Pieces{"٣٤٥", "²Ⅷ"}));
}

TEST(Pretokenizer, CutsRunsOfHanAndKana) {
  EXPECT_EQ(split("abc東京タワーxyz"), (Pieces{"abc", "東京タワー", "xyz"}));
  EXPECT_EQ(split(" 東"), (Pieces{" ", "東"}));
  EXPECT_EQ(split("ア・イ"), (Pieces{"ア", "・", "イ"}));
}

TEST(Pretokenizer, TakesOnePrecedingBlankWithAWord) {
  EXPECT_EQ(split("hello  world"), (Pieces{"hello", " ", " world"}));
  EXPECT_EQ(split("a\tb"), (Pieces{"a", "\tb"}));
  EXPECT_EQ(split("a\nb"), (Pieces{"a", "\n", "b"}));
}

TEST(Pretokenizer, JoinsAsciiPunctuationWithTheAsciiLettersBehindIt) {
  EXPECT_EQ(split("I'll"), (Pieces{"I", "'ll"}));
  EXPECT_EQ(split("a.bé"), (Pieces{"a", ".b", "é"}));
  EXPECT_EQ(split("+x"), (Pieces{"+x"}));
  EXPECT_EQ(split("«x"), (Pieces{"«", "x"}));
}

TEST(Pretokenizer, TakesNewlinesBehindSigns) {
  EXPECT_EQ(split("a {\r\n\r\n}"), (Pieces{"a", " {\r\n\r\n", "}"}));
  EXPECT_EQ(split("a ...b"), (Pieces{"a", " ...", "b"}));
}

TEST(Pretokenizer, CutsBlanksAfterTheLastNewline) {
  EXPECT_EQ(split(" \n \n  x"), (Pieces{" \n \n", " ", " x"}));
  EXPECT_EQ(split("x \n "), (Pieces{"x", " \n", " "}));
}

TEST(Pretokenizer, LookAheadSeesTheEndOfThePiece) {
  EXPECT_EQ(split("x   1"), (Pieces{"x", "   ", "1"}));
  EXPECT_EQ(split("x   東"), (Pieces{"x", "   ", "東"}));
  EXPECT_EQ(split("x   "), (Pieces{"x", "   "}));
}

TEST(Pretokenizer, JoinsNeighboursThatNothingMatches) {
  EXPECT_EQ(split(std::string_view("\x01\x02z\x03", 4)), (Pieces{"\x01", "\x02z", "\x03"}));
  EXPECT_EQ(split("\u200b\ufeff\ue000"), (Pieces{"\u200b\ufeff\ue000"}));
}

TEST(Pretokenizer, EmptyTextHasNoPieces) {
  EXPECT_TRUE(split("").empty());
}

RC_GTEST_PROP(PretokenizerProperty, PiecesJoinedAreTheText, ()) {
  const std::string text = *testing::random_text();
  std::string joined;
  for (const std::string& piece : split(text)) joined += piece;
  RC_ASSERT(joined == text);
}

TEST(UnicodeClasses, AreThoseOfUnicode16) {
  std::vector<CharClass> expected(0x110000, CharClass::other);
  const Json classes = testing::api_cases("unicode_classes.json");
  const std::pair<const char*, CharClass> names[] = {{"N", CharClass::number}, {"L", CharClass::letter},
                                                     {"M", CharClass::mark},   {"P", CharClass::punctuation},
                                                     {"S", CharClass::symbol}, {"space", CharClass::space}};
  for (const auto& [name, char_class] : names) {
    for (const Json& range : classes[name]) {
      for (auto c = range[0].get<std::size_t>(); c <= range[1].get<std::size_t>(); ++c) {
        ASSERT_EQ(expected[c], CharClass::other);
        expected[c] = char_class;
      }
    }
  }
  for (char32_t c = 0; c < 0x110000; ++c)
    ASSERT_EQ(char_class(c), expected[c]) << std::hex << std::uint32_t{c};
}

}  // namespace
}  // namespace thalweg::text
