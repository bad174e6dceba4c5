// Which tokenizer.json files are refused, and in which words.
#include "text/tokenizer_file.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.hpp"
#include "base/json.hpp"
#include "support/text_data.hpp"
#include "text/tokenizer_byte_alphabet.hpp"

namespace thalweg::text {
namespace {

/// A small complete file: the 256 bytes, "ab" (256) and "abc" (257) with their merges, and one added token
/// (258).
Json small_document() {
  Json document =
      parse_json(read_text_file(std::string(THALWEG_SOURCE_DIR) + "/models/mini/tokenizer.json"), "mini");
  Json vocabulary = Json::object();
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[spelling_of_bytes(std::string(1, static_cast<char>(byte)))] = byte;
  }
  vocabulary["ab"] = 256;
  vocabulary["abc"] = 257;
  document["model"]["vocab"] = vocabulary;
  document["model"]["merges"] = parse_json(R"([["a", "b"], ["ab", "c"]])", "merges");
  Json token = document["added_tokens"][0];
  token["id"] = 258;
  token["content"] = "<think>";
  document["added_tokens"] = Json::array();
  document["added_tokens"].push_back(token);
  return document;
}

std::string message_for(std::string_view json) {
  try {
    Tokenizer::parse(json, "tokenizer.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string message_after(const std::function<void(Json&)>& change) {
  Json document = small_document();
  change(document);
  return message_for(to_text(document));
}

struct Case {
  const char* name;
  std::function<void(Json&)> change;
  const char* message;
};

const Case cases[] = {
    {"UnknownMember", [](Json& d) { d["extra"] = 1; }, "tokenizer.json: extra: not supported"},
    {"Version", [](Json& d) { d["version"] = "2.0"; },
     "tokenizer.json: version: expected \"1.0\", found \"2.0\""},
    {"Truncation",
     [](Json& d) {
       d["truncation"] = Json{{"max_length", 8}};
     },
     "tokenizer.json: truncation: expected null, found {\"max_length\":8}"},
    {"Padding", [](Json& d) { d["padding"] = 3; }, "tokenizer.json: padding: expected null, found 3"},
    {"Normalizer",
     [](Json& d) {
       d["normalizer"] = Json{{"type", "NFC"}};
     },
     "tokenizer.json: normalizer: expected null or {\"type\":\"Sequence\",\"normalizers\":[]}, "
     "found {\"type\":\"NFC\"}"},
    {"PreTokenizerKind",
     [](Json& d) {
       d["pre_tokenizer"] = Json{{"type", "Metaspace"}};
     },
     "tokenizer.json: pre_tokenizer.type: expected \"Sequence\", found \"Metaspace\""},
    {"PreTokenizerSteps", [](Json& d) { d["pre_tokenizer"]["pretokenizers"].erase(1); },
     "tokenizer.json: pre_tokenizer.pretokenizers: expected an array of 4"},
    {"SplitPattern", [](Json& d) { d["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "\\p{N}"; },
     "tokenizer.json: pre_tokenizer.pretokenizers[0].pattern: expected {\"Regex\":\"\\\\p{N}{1,3}\"}, "
     "found {\"Regex\":\"\\\\p{N}\"}"},
    {"SplitBehavior", [](Json& d) { d["pre_tokenizer"]["pretokenizers"][2]["behavior"] = "Removed"; },
     "tokenizer.json: pre_tokenizer.pretokenizers[2].behavior: expected \"Isolated\", found \"Removed\""},
    {"SplitInverted", [](Json& d) { d["pre_tokenizer"]["pretokenizers"][2]["invert"] = true; },
     "tokenizer.json: pre_tokenizer.pretokenizers[2].invert: expected false, found true"},
    {"ByteLevelRegex", [](Json& d) { d["pre_tokenizer"]["pretokenizers"][3]["use_regex"] = true; },
     "tokenizer.json: pre_tokenizer.pretokenizers[3].use_regex: expected false, found true"},
    {"PrefixSpace", [](Json& d) { d["pre_tokenizer"]["pretokenizers"][3]["add_prefix_space"] = true; },
     "tokenizer.json: pre_tokenizer.pretokenizers[3].add_prefix_space: expected false, found true"},
    {"PostProcessor",
     [](Json& d) {
       d["post_processor"] = Json{{"type", "TemplateProcessing"}};
     },
     "tokenizer.json: post_processor.type: expected \"ByteLevel\", found \"TemplateProcessing\""},
    {"Decoder", [](Json& d) { d["decoder"] = nullptr; },
     "tokenizer.json: decoder: expected an object of type ByteLevel, found null or nothing"},
    {"ModelKind", [](Json& d) { d["model"]["type"] = "Unigram"; },
     "tokenizer.json: model.type: expected \"BPE\", found \"Unigram\""},
    {"ModelMember", [](Json& d) { d["model"]["bias"] = 1; }, "tokenizer.json: model.bias: not supported"},
    {"Dropout", [](Json& d) { d["model"]["dropout"] = 0.5; },
     "tokenizer.json: model.dropout: expected null, found 0.5"},
    {"UnknownToken", [](Json& d) { d["model"]["unk_token"] = "<unk>"; },
     "tokenizer.json: model.unk_token: expected null, found \"<unk>\""},
    {"ByteFallback", [](Json& d) { d["model"]["byte_fallback"] = true; },
     "tokenizer.json: model.byte_fallback: expected false or null, found true"},
    {"IgnoreMerges", [](Json& d) { d["model"]["ignore_merges"] = true; },
     "tokenizer.json: model.ignore_merges: expected false or null, found true"},
    {"SubwordPrefix", [](Json& d) { d["model"]["continuing_subword_prefix"] = "##"; },
     "tokenizer.json: model.continuing_subword_prefix: expected null or \"\", found \"##\""},
    {"NoVocabulary", [](Json& d) { d["model"].erase("vocab"); },
     "tokenizer.json: model.vocab: expected an object of spellings and ids that is not empty"},
    {"VocabularyNotAnObject", [](Json& d) { d["model"]["vocab"] = "abc"; },
     "tokenizer.json: model.vocab: expected an object of spellings and ids that is not empty"},
    {"NegativeId", [](Json& d) { d["model"]["vocab"]["ab"] = -1; },
     "tokenizer.json: model.vocab[\"ab\"]: expected an id in [0, 4194304), found -1"},
    {"HugeId", [](Json& d) { d["model"]["vocab"]["ab"] = 18446744073709551615U; },
     "tokenizer.json: model.vocab[\"ab\"]: expected an id in [0, 4194304)"},
    {"IdNotANumber", [](Json& d) { d["model"]["vocab"]["ab"] = "256"; },
     "tokenizer.json: model.vocab[\"ab\"]: expected an integer, found a string"},
    {"IdNotWhole", [](Json& d) { d["model"]["vocab"]["ab"] = 1.5; },
     "tokenizer.json: model.vocab[\"ab\"]: expected an integer, found a number"},
    {"IdIsAnObject", [](Json& d) { d["model"]["vocab"]["ab"] = Json::object(); },
     "tokenizer.json: model.vocab[\"ab\"]: expected an integer, found an object"},
    {"IdTwice", [](Json& d) { d["model"]["vocab"]["abc"] = 256; },
     "tokenizer.json: model.vocab[\"abc\"]: id 256 belongs to another entry too"},
    {"EmptySpelling", [](Json& d) { d["model"]["vocab"][""] = 300; },
     "tokenizer.json: model.vocab: an entry has no spelling"},
    {"ByteMissing", [](Json& d) { d["model"]["vocab"].erase("Ġ"); },
     "tokenizer.json: model.vocab: no entry \"Ġ\" for byte 0x20"},
    {"NoMerges", [](Json& d) { d["model"].erase("merges"); },
     "tokenizer.json: model.merges: expected an array of pairs"},
    {"MergePartUnknown",
     [](Json& d) {
       d["model"]["merges"][1] = {"abd", "c"};
     },
     "tokenizer.json: model.merges[1]: \"abd\" is not in the vocabulary"},
    {"MergeResultUnknown",
     [](Json& d) {
       d["model"]["merges"][1] = {"ab", "d"};
     },
     "tokenizer.json: model.merges[1]: \"abd\" is not in the vocabulary"},
    {"MergeTwice",
     [](Json& d) {
       d["model"]["merges"][1] = {"a", "b"};
     },
     "tokenizer.json: model.merges[1]: \"a b\" appears twice"},
    {"MergeWithoutSpace", [](Json& d) { d["model"]["merges"][0] = "ab"; },
     "tokenizer.json: model.merges[0]: expected two spellings around one space, found \"ab\""},
    {"MergeOfThree",
     [](Json& d) {
       d["model"]["merges"][1] = {"a", "b", "c"};
     },
     "tokenizer.json: model.merges[1]: expected a pair of strings, found more than two"},
    {"MergeOfOne", [](Json& d) { d["model"]["merges"][1] = Json::array({"a"}); },
     "tokenizer.json: model.merges[1]: expected a pair of strings, found 1"},
    {"MergeOfNumbers",
     [](Json& d) {
       d["model"]["merges"][1] = {1, 2};
     },
     "tokenizer.json: model.merges[1]: expected a string, found a number"},
    {"MergeIsANumber", [](Json& d) { d["model"]["merges"][1] = 7; },
     "tokenizer.json: model.merges[1]: expected \"a b\" or [\"a\", \"b\"], found a number"},
    {"NoAddedTokens", [](Json& d) { d.erase("added_tokens"); },
     "tokenizer.json: added_tokens: expected an array, found null or nothing"},
    {"AddedTokenStrips", [](Json& d) { d["added_tokens"][0]["lstrip"] = true; },
     "tokenizer.json: added_tokens[0].lstrip: expected false, found true"},
    {"AddedTokenSingleWord", [](Json& d) { d["added_tokens"][0]["single_word"] = true; },
     "tokenizer.json: added_tokens[0].single_word: expected false, found true"},
    {"AddedTokenMember", [](Json& d) { d["added_tokens"][0]["weight"] = 1; },
     "tokenizer.json: added_tokens[0].weight: not supported"},
    {"AddedTokenNameless", [](Json& d) { d["added_tokens"][0]["content"] = ""; },
     "tokenizer.json: added_tokens[0].content: expected a string that is not empty, found \"\""},
    {"AddedTokenWithoutContent", [](Json& d) { d["added_tokens"][0].erase("content"); },
     "tokenizer.json: added_tokens[0]: has no content"},
    {"AddedTokenWithoutId", [](Json& d) { d["added_tokens"][0].erase("id"); },
     "tokenizer.json: added_tokens[0]: has no id"},
    {"AddedTokenHugeId", [](Json& d) { d["added_tokens"][0]["id"] = 2147483647; },
     "tokenizer.json: added_tokens[0].id: expected an id in [0, 4194304), found 2147483647"},
    {"AddedTokenTakesAnId", [](Json& d) { d["added_tokens"][0]["id"] = 65; },
     "tokenizer.json: added_tokens[0]: \"<think>\" has id 65, which model.vocab gives otherwise"},
    {"AddedTokenRenumbersAnEntry", [](Json& d) { d["added_tokens"][0]["content"] = "abc"; },
     "tokenizer.json: added_tokens[0]: \"abc\" has id 258, which model.vocab gives otherwise"},
    {"AddedTokenIdTwice",
     [](Json& d) {
       d["added_tokens"].push_back(d["added_tokens"][0]);
       d["added_tokens"][1]["content"] = "</think>";
     },
     "tokenizer.json: added_tokens[1]: id 258 appears twice"},
    {"AddedTokenSpellingTwice",
     [](Json& d) {
       d["added_tokens"].push_back(d["added_tokens"][0]);
       d["added_tokens"][1]["id"] = 259;
     },
     "tokenizer.json: added_tokens[1]: \"<think>\" appears twice"},
};

TEST(TokenizerFile, SmallDocumentIsAccepted) {
  const Tokenizer tokenizer = Tokenizer::parse(to_text(small_document()), "tokenizer.json");
  EXPECT_EQ(tokenizer.vocab_size(), 259);
  EXPECT_EQ(tokenizer.encode("abc<think>ba"), (std::vector<TokenId>{257, 258, 'b', 'a'}));
}

TEST(TokenizerFile, RefusesWhatItDoesNotSupportNamingTheField) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const std::string message = message_after(c.change);
    EXPECT_EQ(message.substr(0, std::string_view(c.message).size()), c.message);
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(TokenizerFile, RefusesBrokenJson) {
  const std::string whole = to_text(small_document());
  EXPECT_TRUE(message_for("").starts_with("tokenizer.json: not valid JSON: "));
  EXPECT_TRUE(message_for(whole + "]").starts_with("tokenizer.json: not valid JSON: "));
  EXPECT_TRUE(message_for("[\"\xFF\"]").starts_with("tokenizer.json: not valid JSON: "));
  EXPECT_TRUE(message_for("[\"\\ud800\"]").starts_with("tokenizer.json: not valid JSON: "));
  EXPECT_EQ(message_for("[]"), "tokenizer.json: expected an object, found []");
  EXPECT_EQ(message_for("7"), "tokenizer.json: expected an object, found 7");
  EXPECT_EQ(message_for(std::string(1000, '[')), "tokenizer.json: nested deeper than 16 levels");
  for (std::size_t length = 0; length < whole.size(); length += 97) {
    EXPECT_TRUE(message_for(whole.substr(0, length)).starts_with("tokenizer.json: not valid JSON: "));
  }
}

TEST(TokenizerFile, RefusesRepeatedMembers) {
  EXPECT_EQ(message_for(R"({"version":"1.0","version":"1.0"})"),
            "tokenizer.json: member \"version\" appears twice");
  std::string twice = to_text(small_document());
  twice.replace(twice.find("\"abc\":257"), 9, "\"ab\":257");
  EXPECT_EQ(message_for(twice), "tokenizer.json: model.vocab: \"ab\" appears twice");
}

TEST(TokenizerFile, MayHaveGapsBetweenIds) {
  Json document = small_document();
  document["added_tokens"][0]["id"] = 300;
  const Tokenizer tokenizer = Tokenizer::parse(to_text(document), "tokenizer.json");
  EXPECT_EQ(tokenizer.vocab_size(), 301);
  EXPECT_EQ(tokenizer.token_bytes(280), "");
  EXPECT_FALSE(tokenizer.is_added(280));
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{280, 300}), "<think>");
}

TEST(TokenizerFile, MembersMayComeInAnyOrder) {
  const Json document = small_document();
  Json turned = Json::object(), model = Json::object();
  for (auto it = document["model"].rbegin(); it != document["model"].rend(); ++it)
    model[it.key()] = it.value();
  for (auto it = document.rbegin(); it != document.rend(); ++it) turned[it.key()] = it.value();
  turned["model"] = model;
  EXPECT_EQ(Tokenizer::parse(to_text(turned), "turned").encode("abcab"), (std::vector<TokenId>{257, 256}));
}

TEST(TokenizerFile, MergesGoByRankThenFromTheLeft) {
  Json document = small_document();
  document["model"]["vocab"]["bc"] = 258;
  document["model"]["vocab"]["aa"] = 259;
  document["model"]["merges"] = parse_json(R"([["b", "c"], ["a", "b"], ["a", "a"]])", "merges");
  document["added_tokens"] = Json::array();
  const Tokenizer tokenizer = Tokenizer::parse(to_text(document), "ranks");
  EXPECT_EQ(tokenizer.encode("abc"), (std::vector<TokenId>{'a', 258}));
  EXPECT_EQ(tokenizer.encode("aaa"), (std::vector<TokenId>{259, 'a'}));
  EXPECT_EQ(tokenizer.encode("aab"), (std::vector<TokenId>{'a', 256}));
}

TEST(TokenizerFile, LongestOfTheAddedTokensThatStartAtOnePlaceWins) {
  Json document = small_document();
  auto add = [&, id = 259](const char* content) mutable {
    Json token = document["added_tokens"][0];
    token["content"] = content;
    token["id"] = id++;
    document["added_tokens"].push_back(token);
  };
  add("<t");
  add("hink>a");
  add("<think>ab");
  const Tokenizer tokenizer = Tokenizer::parse(to_text(document), "overlaps");
  EXPECT_EQ(tokenizer.encode("<think>ab"), (std::vector<TokenId>{261}));
  EXPECT_EQ(tokenizer.encode("<think>a"), (std::vector<TokenId>{258, 'a'}));
  EXPECT_EQ(tokenizer.encode("<thinka"), tokenizer.encode("<t"
                                                          "hinka"));
  EXPECT_EQ(tokenizer.encode("<thin"), (std::vector<TokenId>{259, 'h', 'i', 'n'}));
  EXPECT_EQ(tokenizer.encode("xhink>a"), (std::vector<TokenId>{'x', 260}));
}

TEST(TokenizerFile, MissingFileIsNamed) {
  try {
    Tokenizer::load("/nowhere/tokenizer.json");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("/nowhere/tokenizer.json: "));
  }
}

TEST(ByteAlphabet, SpellsEveryByteAndBack) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<char>(byte));
  EXPECT_EQ(bytes_of_spelling(spelling_of_bytes(bytes)), bytes);
  EXPECT_EQ(spelling_of_bytes(" \n"), "ĠĊ");
  EXPECT_EQ(bytes_of_spelling("｜"), std::nullopt);
  EXPECT_EQ(bytes_of_spelling("a b"), std::nullopt);
}

}  // namespace
}  // namespace thalweg::text
