#include "text/detokenizer.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <climits>

#include "support/random_text.hpp"
#include "support/text_data.hpp"
#include "text/utf8.hpp"

namespace thalweg::text {
namespace {

using testing::api_cases;
using testing::released_tokenizer;
using Ids = std::vector<TokenId>;

std::vector<std::string> pieces_of(const Ids& ids) {
  Detokenizer stream(released_tokenizer());
  std::vector<std::string> pieces;
  for (const TokenId id : ids) pieces.push_back(stream.push(id));
  stream.finish();
  return pieces;
}

std::string joined(const std::vector<std::string>& pieces) {
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  return text;
}

/// Ids of tokens whose bytes are not UTF-8 by themselves, and some that are.
rc::Gen<Ids> random_ids() {
  static const Ids broken = [] {
    Ids ids;
    for (TokenId id = 0; id < released_tokenizer().vocab_size(); ++id) {
      const std::string_view bytes = released_tokenizer().token_bytes(id);
      if (find_ill_formed_utf8(bytes) != bytes.size()) ids.push_back(id);
    }
    return ids;
  }();
  return rc::gen::container<Ids>(
      rc::gen::oneOf(rc::gen::elementOf(broken), rc::gen::inRange<TokenId>(-2, 129300)));
}

TEST(Detokenizer, GivesTheGoldenPieces) {
  const Json& cases = api_cases("tokenize.json").at("decode_stream");
  ASSERT_EQ(cases.size(), 22u);
  for (const Json& c : cases) {
    const auto pieces = pieces_of(c["ids"].get<Ids>());
    EXPECT_EQ(pieces, c["pieces"].get<std::vector<std::string>>());
    EXPECT_EQ(joined(pieces), c["text"].get<std::string>());
  }
}

TEST(Detokenizer, NeverSplitsACharacterOverTokenBorders) {
  for (const std::string text : {"😀 ďábelské 社区", "🧑\u200d🚀𓀀", "naïve — “quotes”"}) {
    const auto pieces = pieces_of(released_tokenizer().encode(text));
    EXPECT_EQ(joined(pieces), text);
    for (const std::string& piece : pieces) EXPECT_EQ(piece.find("\uFFFD"), std::string::npos);
  }
}

TEST(Detokenizer, DropsAnUnfinishedCharacterAtTheEnd) {
  const Ids ids = {*released_tokenizer().encode("a").begin(), 117366, 225};  // "a" and three bytes of U+13000
  EXPECT_EQ(pieces_of(ids), (std::vector<std::string>{"a", "", ""}));
}

TEST(Detokenizer, ReleasesAnIllFormedByteAsSoonAsItIsKnown) {
  Detokenizer stream(released_tokenizer());
  EXPECT_EQ(stream.push(117366), "");
  EXPECT_FALSE(stream.pending().empty());
  EXPECT_EQ(stream.push(67), "\uFFFD" + std::string(released_tokenizer().token_bytes(67)));
  EXPECT_TRUE(stream.pending().empty());
}

TEST(Detokenizer, TextThatMayBecomeMarkupIsNotItsBusiness) {
  EXPECT_EQ(joined(pieces_of(released_tokenizer().encode("2 <"))), "2 <");
  EXPECT_EQ(joined(pieces_of(released_tokenizer().encode("x </think"))), "x </think");
}

TEST(Detokenizer, IdsOutsideTheVocabularyAddNothingEvenInsideACharacter) {
  const Ids whole = released_tokenizer().encode("𓀀");
  Ids mixed;
  for (const TokenId id : whole) mixed.insert(mixed.end(), {-1, INT_MAX, 129280, id});
  EXPECT_EQ(joined(pieces_of(mixed)), "𓀀");
}

TEST(Detokenizer, ACopyRollsBack) {
  Detokenizer stream(released_tokenizer());
  stream.push(117366);
  const Detokenizer before = stream;
  EXPECT_EQ(stream.push(67), "\uFFFD" + std::string(released_tokenizer().token_bytes(67)));
  stream = before;
  stream.push(225);
  EXPECT_EQ(stream.push(225), "𓀀");
}

TEST(Detokenizer, IsReadyForANewStreamAfterTheEnd) {
  Detokenizer stream(released_tokenizer());
  stream.push(117366);
  stream.finish();
  EXPECT_EQ(stream.push(67), released_tokenizer().token_bytes(67));
}

RC_GTEST_PROP(DetokenizerProperty, PiecesJoinedAreTheWholeTextLessAnUnfinishedEnd, ()) {
  const Ids ids = *random_ids();
  Detokenizer stream(released_tokenizer());
  std::string text;
  for (const TokenId id : ids) {
    const std::string piece = stream.push(id);
    RC_ASSERT(find_ill_formed_utf8(piece) == piece.size());
    RC_ASSERT(stream.pending().size() <= 3u);
    text += piece;
  }
  if (!stream.pending().empty()) text += "\uFFFD";
  RC_ASSERT(text == released_tokenizer().decode(ids));
}

RC_GTEST_PROP(DetokenizerProperty, ATextComesBackWhereverItsTokensBreak, ()) {
  const std::string text = *testing::random_text();
  RC_ASSERT(joined(pieces_of(released_tokenizer().encode_plain(text))) == text);
}

TEST(Utf8, ReplacesEachMaximalIllFormedPart) {
  const std::pair<std::string, std::string> cases[] = {
      {"plain", "plain"},
      {"\x80", "\uFFFD"},
      {"\xC3", "\uFFFD"},
      {"\xC0\xAF", "\uFFFD\uFFFD"},                      // overlong
      {"\xE0\x9F\xBF", "\uFFFD\uFFFD\uFFFD"},            // overlong
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},            // surrogate
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // above U+10FFFF
      {"\xF0\x9F\x98", "\uFFFD"},                        // one maximal part
      {"\xF0\x9F\x98z", "\uFFFDz"},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBFz", "\uFFFD\uFFFD\uFFFD\uFFFDz"},
      {"\uFFFD", "\uFFFD"},
      {std::string("a\0b", 3), std::string("a\0b", 3)},
  };
  for (const auto& [bytes, text] : cases) EXPECT_EQ(replace_ill_formed_utf8(bytes), text);
}

TEST(Utf8, ReadsBackEveryCharacterItWrites) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string bytes;
    append_utf8(bytes, c);
    const Utf8Unit unit = read_utf8(bytes);
    ASSERT_EQ(unit.state, Utf8State::complete);
    ASSERT_EQ(unit.code_point, c);
    ASSERT_EQ(unit.length, bytes.size());
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
      ASSERT_EQ(read_utf8(std::string_view(bytes).substr(0, cut)).state, Utf8State::unfinished);
    }
  }
}

}  // namespace
}  // namespace thalweg::text
