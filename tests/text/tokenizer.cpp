#include "text/tokenizer.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <climits>
#include <cstring>

#include "base/error.hpp"
#include "support/random_text.hpp"
#include "support/sha256.hpp"
#include "support/text_data.hpp"
#include "text/special_tokens.hpp"

namespace thalweg::text {
namespace {

using testing::api_cases;
using testing::released_tokenizer;
using Ids = std::vector<TokenId>;

Ids ids_of(const Json& value) {
  return value.get<Ids>();
}

std::string joined_parts(const Json& parts) {
  std::string text;
  for (const Json& part : parts) {
    for (int i = 0; i < part[1].get<int>(); ++i) text += part[0].get<std::string>();
  }
  return text;
}

std::string digest(const Ids& ids) {
  return testing::sha256({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(TokenId)});
}

void expect_encodes(const Json& cases) {
  ASSERT_FALSE(cases.empty());
  for (const Json& c : cases) {
    const auto text = c["text"].get<std::string>();
    SCOPED_TRACE(c.contains("name") ? c["name"].get<std::string>() : text);
    const Ids ids = released_tokenizer().encode(text);
    EXPECT_EQ(ids, ids_of(c["ids"]));
    EXPECT_EQ(released_tokenizer().decode(ids), text);
    if (c.contains("ids_plain")) {
      EXPECT_EQ(released_tokenizer().encode_plain(text), ids_of(c["ids_plain"]));
    }
  }
}

void expect_encodes_long(const Json& cases) {
  ASSERT_FALSE(cases.empty());
  for (const Json& c : cases) {
    SCOPED_TRACE(c["name"].get<std::string>());
    const std::string text = joined_parts(c["parts"]);
    const Ids ids = released_tokenizer().encode(text);
    ASSERT_EQ(ids.size(), c["n_ids"].get<std::size_t>());
    EXPECT_EQ(Ids(ids.begin(), ids.begin() + 8), ids_of(c["first"]));
    EXPECT_EQ(Ids(ids.end() - 8, ids.end()), ids_of(c["last"]));
    EXPECT_EQ(digest(ids), c["ids_sha256"].get<std::string>());
    if (c.contains("ids_plain_sha256")) {
      const Ids plain = released_tokenizer().encode_plain(text);
      EXPECT_EQ(plain.size(), c["n_ids_plain"].get<std::size_t>());
      EXPECT_EQ(digest(plain), c["ids_plain_sha256"].get<std::string>());
    }
  }
}

void expect_decodes(const Json& cases) {
  ASSERT_FALSE(cases.empty());
  for (const Json& c : cases)
    EXPECT_EQ(released_tokenizer().decode(ids_of(c["ids"])), c["text"].get<std::string>());
}

std::string message_of_encoding(std::string_view text) {
  try {
    released_tokenizer().encode(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Tokenizer, HasTheReleasedVocabularySize) {
  EXPECT_EQ(released_tokenizer().vocab_size(), 129280);
}

TEST(Tokenizer, EncodesTheGoldenTexts) {
  expect_encodes(api_cases("tokenize.json")["encode"]);
}
TEST(Tokenizer, EncodesRandomTextsAsTheReferenceDoes) {
  expect_encodes(api_cases("tokenize_random.json")["encode"]);
}
TEST(Tokenizer, EncodesTheGoldenLongTexts) {
  expect_encodes_long(api_cases("tokenize.json")["encode_long"]);
}
TEST(Tokenizer, EncodesLongRunsOfOneCharacter) {
  expect_encodes_long(api_cases("tokenize_random.json")["encode_long"]);
}
TEST(Tokenizer, SpecialTokensKeepTheirSpellingWhenDecoded) {
  expect_decodes(api_cases("tokenize.json")["decode_special"]);
}
TEST(Tokenizer, DecodesRandomIdsAsTheReferenceDoes) {
  expect_decodes(api_cases("tokenize_random.json")["decode"]);
}

TEST(Tokenizer, EncodesTheSameWhereMergesAreStringsOrPairs) {
  Json document =
      parse_json(read_text_file(std::string(THALWEG_SOURCE_DIR) + "/models/mini/tokenizer.json"), "mini");
  const Tokenizer from_pairs = Tokenizer::parse(to_text(document), "pairs");
  for (Json& merge : document["model"]["merges"]) {
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  const Tokenizer from_strings = Tokenizer::parse(to_text(document), "strings");
  for (const Json& c : api_cases("tokenize.json").at("encode")) {
    const auto text = c["text"].get<std::string>();
    EXPECT_EQ(from_pairs.encode(text), from_strings.encode(text));
    EXPECT_EQ(from_pairs.decode(from_pairs.encode(text)), text);
  }
}

TEST(Tokenizer, PlainTextThatSpellsAControlTokenStaysText) {
  EXPECT_EQ(released_tokenizer().encode_plain("<｜User｜>"), (Ids{30, 28217, 6756, 28217, 32}));
  EXPECT_EQ(released_tokenizer().encode_plain("</think>"), (Ids{1718, 37947, 32}));
  EXPECT_EQ(released_tokenizer().encode("<｜User｜></think>"), (Ids{128803, 128822}));
}

TEST(Tokenizer, KeepsBlanksExactly) {
  for (const std::string text :
       {"hello world", "   leading spaces", "def f(n):\n    return n", "", " ", "\n \n"}) {
    EXPECT_EQ(released_tokenizer().decode(released_tokenizer().encode(text)), text);
  }
}

TEST(Tokenizer, EmptyTextHasNoIds) {
  EXPECT_TRUE(released_tokenizer().encode("").empty());
  EXPECT_TRUE(released_tokenizer().encode_plain("").empty());
}

TEST(Tokenizer, TextMayHoldZeroBytes) {
  const std::string text("a\0b\0", 4);
  EXPECT_EQ(released_tokenizer().decode(released_tokenizer().encode(text)), text);
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8NamingTheByte) {
  EXPECT_EQ(message_of_encoding("ab\xFFz"), "text: not valid UTF-8 at byte 2");
  EXPECT_EQ(message_of_encoding("\xC0\xAF"), "text: not valid UTF-8 at byte 0");
  EXPECT_EQ(message_of_encoding("\xED\xA0\x80"), "text: not valid UTF-8 at byte 0");
  EXPECT_EQ(message_of_encoding("äö\xF0\x9F\x98"), "text: not valid UTF-8 at byte 4");
  EXPECT_THROW(released_tokenizer().encode_plain("\x80"), InputError);
}

TEST(Tokenizer, IdsOutsideTheVocabularyDecodeToNothing) {
  const Tokenizer& tokenizer = released_tokenizer();
  for (const TokenId id : {-1, INT_MIN, 129280, 129300, INT_MAX}) {
    EXPECT_EQ(tokenizer.token_bytes(id), "");
    EXPECT_FALSE(tokenizer.is_added(id));
    EXPECT_EQ(tokenizer.decode(Ids{id, 67, id}), tokenizer.decode(Ids{67}));
  }
}

TEST(Tokenizer, TokenBytesMayBePartOfACharacter) {
  EXPECT_EQ(released_tokenizer().token_bytes(128803), "<｜User｜>");
  const Ids ids = released_tokenizer().encode("😀");
  std::string bytes;
  for (const TokenId id : ids) bytes += released_tokenizer().token_bytes(id);
  EXPECT_EQ(bytes, "😀");
}

TEST(Tokenizer, FindsAddedTokensBySpelling) {
  EXPECT_EQ(released_tokenizer().added_token("<｜User｜>"), 128803);
  EXPECT_EQ(released_tokenizer().added_token("<｜User｜"), std::nullopt);
  EXPECT_EQ(released_tokenizer().added_token("hello"), std::nullopt);
  EXPECT_EQ(released_tokenizer().added_token(""), std::nullopt);
  EXPECT_TRUE(released_tokenizer().is_added(0));
  EXPECT_TRUE(released_tokenizer().is_added(129279));
  EXPECT_FALSE(released_tokenizer().is_added(3));
}

TEST(Tokenizer, MovesLeaveTheTargetWhole) {
  Tokenizer first = Tokenizer::load(std::string(THALWEG_SOURCE_DIR) + "/models/mini/tokenizer.json");
  const Ids ids = first.encode("one two three");
  Tokenizer second = std::move(first);
  EXPECT_EQ(second.encode("one two three"), ids);
}

TEST(SpecialTokens, AreThoseOfTheReleasedVocabulary) {
  const SpecialTokens tokens = find_special_tokens(released_tokenizer());
  EXPECT_EQ((Ids{tokens.bos, tokens.eos, tokens.pad}), (Ids{0, 1, 2}));
  EXPECT_EQ((Ids{tokens.system, tokens.user, tokens.assistant}), (Ids{128799, 128803, 128804}));
  EXPECT_EQ((Ids{tokens.think, tokens.end_think, tokens.dsml}), (Ids{128821, 128822, 128825}));
  EXPECT_EQ((Ids{tokens.image, tokens.latest_reminder}), (Ids{129264, 128828}));
  EXPECT_EQ((Ids{*tokens.action, *tokens.query, *tokens.authority}), (Ids{128829, 128830, 128831}));
  EXPECT_EQ((Ids{*tokens.domain, *tokens.title, *tokens.read_url}), (Ids{128832, 128836, 128845}));
  EXPECT_EQ((Ids{*tokens.fim_hole, *tokens.fim_begin, *tokens.fim_end}), (Ids{128800, 128801, 128802}));
}

TEST(SpecialTokens, MissingOneIsNamed) {
  Json document =
      parse_json(read_text_file(std::string(THALWEG_SOURCE_DIR) + "/models/mini/tokenizer.json"), "mini");
  for (Json& token : document["added_tokens"]) {
    if (token["content"] == "</think>") token["content"] = "</thinking>";
    if (token["content"] == "<｜action｜>") token["content"] = "<｜deed｜>";
  }
  try {
    find_special_tokens(Tokenizer::parse(to_text(document), "mini"));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "tokenizer.json: added_tokens: expected an entry \"</think>\", found none");
  }
}

RC_GTEST_PROP(TokenizerProperty, DecodingGivesTheTextBack, ()) {
  const std::string text = *testing::random_text();
  RC_ASSERT(released_tokenizer().decode(released_tokenizer().encode(text)) == text);
  RC_ASSERT(released_tokenizer().decode(released_tokenizer().encode_plain(text)) == text);
}

RC_GTEST_PROP(TokenizerProperty, PlainIdsAreNeverAddedTokens, ()) {
  for (const TokenId id : released_tokenizer().encode_plain(*testing::random_text())) {
    RC_ASSERT(!released_tokenizer().is_added(id));
  }
}

RC_GTEST_PROP(TokenizerProperty, AddedTokensCutTheTextIntoIndependentParts, ()) {
  const std::string left = *testing::random_text(), right = *testing::random_text();
  Ids expected = released_tokenizer().encode(left);
  expected.push_back(128803);
  for (const TokenId id : released_tokenizer().encode(right)) expected.push_back(id);
  RC_ASSERT(released_tokenizer().encode(left + "<｜User｜>" + right) == expected);
}

}  // namespace
}  // namespace thalweg::text
