#include "text/engram_vocabulary.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "support/sha256.hpp"
#include "support/text_data.hpp"
#include "text/tokenizer_byte_alphabet.hpp"

namespace thalweg::text {
namespace {

using Map = std::vector<std::int32_t>;

std::string bytes_of(const Map& map) {
  return {reinterpret_cast<const char*>(map.data()), map.size() * sizeof(std::int32_t)};
}

/// A tensor of 32-bit integers of a safetensors file.
Map read_tensor(const std::filesystem::path& path, const std::string& name) {
  const std::string file = read_text_file(path);
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, file.data(), sizeof header_size);
  const Json tensor = parse_json(std::string_view(file).substr(8, header_size), path.string()).at(name);
  EXPECT_EQ(tensor["dtype"], "I32");
  const auto begin = tensor["data_offsets"][0].get<std::size_t>(),
             end = tensor["data_offsets"][1].get<std::size_t>();
  Map values((end - begin) / sizeof(std::int32_t));
  std::memcpy(values.data(), file.data() + 8 + header_size + begin, end - begin);
  return values;
}

/// Classes of `texts` in a vocabulary of the 256 bytes and of these texts.
Map classes_of(const std::vector<std::string>& texts) {
  Json document =
      parse_json(read_text_file(std::string(THALWEG_SOURCE_DIR) + "/models/mini/tokenizer.json"), "mini");
  Json vocabulary = Json::object();
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[spelling_of_bytes(std::string(1, static_cast<char>(byte)))] = byte;
  }
  for (const std::string& text : texts) {
    const std::string spelling = spelling_of_bytes(text);
    const std::size_t id = vocabulary.size();
    if (!vocabulary.contains(spelling)) vocabulary[spelling] = id;
  }
  document["model"]["vocab"] = vocabulary;
  document["model"]["merges"] = Json::array();
  document["added_tokens"] = Json::array();
  const Map map = engram_vocabulary(Tokenizer::parse(to_text(document), "texts"));
  Map classes;
  for (const std::string& text : texts)
    classes.push_back(map[vocabulary[spelling_of_bytes(text)].get<std::size_t>()]);
  return classes;
}

void expect_one_class(const std::vector<std::string>& texts) {
  const Map classes = classes_of(texts);
  for (std::size_t i = 1; i < texts.size(); ++i)
    EXPECT_EQ(classes[i], classes[0]) << texts[i] << " and " << texts[0];
}

void expect_two_classes(const std::string& a, const std::string& b) {
  const Map classes = classes_of({a, b});
  EXPECT_NE(classes[0], classes[1]) << a << " and " << b;
}

TEST(EngramVocabulary, IsThatOfTheReleasedTokenizer) {
  const Map map = engram_vocabulary(testing::released_tokenizer());
  ASSERT_EQ(map.size(), 129280u);
  EXPECT_EQ(*std::max_element(map.begin(), map.end()), 99091);
  EXPECT_EQ(testing::sha256(bytes_of(map)),
            "c60a86322ec17b4142bfef3c57a8d81fb428550cdf487f88a4320cb59fe46481");
  EXPECT_EQ((Map{map[0], map[1], map[2], map[129264], map[129279]}), (Map{0, 1, 2, 99076, 99091}));
  EXPECT_EQ((Map{map[671], map[4787], map[13769], map[46012]}), (Map{237, 4015, 9933, 18307}));
}

TEST(EngramVocabulary, IsThatOfTheGoldenTokenizers) {
  const std::filesystem::path golden = std::filesystem::path(THALWEG_SOURCE_DIR) / "../shared/golden";
  if (!std::filesystem::exists(golden)) GTEST_SKIP() << "needs the golden data directory";
  for (const char* config : {"tiny", "wide", "long", "realheads"}) {
    const Tokenizer tokenizer = Tokenizer::load(golden / config / "model/tokenizer.json");
    EXPECT_EQ(engram_vocabulary(tokenizer),
              read_tensor(golden / config / "engram_hash.safetensors", "token_map"));
  }
}

TEST(EngramVocabulary, ForgetsCase) {
  expect_one_class({"straße", "STRAßE"});
  expect_one_class({"i", "I", "İ"});   // U+0130 loses its dot before it is lowered
  expect_one_class({"ΟΔΟΣ", "οδοσ"});  // no final sigma
}

TEST(EngramVocabulary, ForgetsAccentsAndCompatibilityForms) {
  expect_one_class({"é", "e", "e\u0301", "É"});
  expect_one_class({"fi", "ﬁ", "ｆｉ"});
  expect_one_class({"क", "कि"});  // a spacing mark
  expect_one_class({"1", "①", "１", "1\u20E3"});
}

TEST(EngramVocabulary, ForgetsBlanksAroundATextAndTheirNumberInside) {
  expect_one_class({"a b", "  a \t\r\n b\n", "\u3000a b\u00a0"});
  expect_two_classes("a b", "ab");
}

TEST(EngramVocabulary, BlankTextsStayApartFromEmptyOnes) {
  expect_one_class({" ", "\n\n", "\t \t"});
  expect_two_classes(" ", "\u0301");  // nothing is left of the mark: the text itself is the key
}

TEST(EngramVocabulary, PartsOfCharactersAreTheirOwnClass) {
  expect_two_classes("\xE4\xBD", "\xE4\xBE");
}

}  // namespace
}  // namespace thalweg::text
