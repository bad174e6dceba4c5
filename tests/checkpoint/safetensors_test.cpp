// The safetensors format: what is read back, and what is refused.
#include "checkpoint/safetensors.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "base/error.hpp"
#include "checkpoint/small_checkpoint.hpp"
#include "support/temporary_folder.hpp"

namespace thalweg::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string file_of(const std::string& header, std::size_t data_bytes) {
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(header.size() >> (8 * i));
  return file + header + std::string(data_bytes, 'x');
}

SafetensorsContent parse(const std::string& file) {
  return parse_safetensors(std::as_bytes(std::span(file)), "file.safetensors");
}

std::string refusal(const std::string& file) {
  try {
    parse(file);
  } catch (const InputError& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    return error.what();
  }
  return "accepted";
}

TEST(Safetensors, ReadsTensorsInTheOrderOfTheirData) {
  const std::string file =
      file_of(R"({"__metadata__":{"format":"pt"},"late":{"dtype":"F32","shape":[2],"data_offsets":[3,11]},)"
              R"("early":{"dtype":"U8","shape":[1,3],"data_offsets":[0,3]}}  )",
              11);
  const SafetensorsContent content = parse(file);
  ASSERT_EQ(content.tensors.size(), 2U);
  EXPECT_EQ(content.tensors[0].name, "early");
  EXPECT_THAT(content.tensors[0].shape, ElementsAre(1, 3));
  EXPECT_EQ(content.tensors[1].dtype, DType::f32);
  EXPECT_EQ(content.tensors[1].bytes.size(), 8U);
  EXPECT_EQ(content.metadata.at("format"), "pt");
}

TEST(Safetensors, AcceptsAnEmptyFileOfTensorsScalarsAndEmptyTensors) {
  EXPECT_TRUE(parse(file_of("{}", 0)).tensors.empty());
  const auto content = parse(file_of(R"({"a":{"dtype":"F64","shape":[],"data_offsets":[0,8]},)"
                                     R"("b":{"dtype":"I8","shape":[0,7],"data_offsets":[8,8]}})",
                                     8));
  EXPECT_TRUE(content.tensors[0].shape.empty());
  EXPECT_TRUE(content.tensors[1].bytes.empty());
}

TEST(Safetensors, WritesWhatItReads) {
  const TemporaryFolder directory;
  const std::array<float, 3> a = {1.0F, -2.5F, 0.0F};
  const std::array<std::uint8_t, 2> b = {7, 255};
  const std::vector<StoredTensor> tensors = {{"b \"quoted\" é", DType::u8, {2}, std::as_bytes(std::span(b))},
                                             {"a", DType::f32, {3, 1}, std::as_bytes(std::span(a))}};
  write_safetensors(directory.path() / "out.safetensors", tensors, {{"note", "x\ny"}});
  const SafetensorsFile file(directory.path() / "out.safetensors");
  ASSERT_EQ(file.tensors().size(), 2U);
  EXPECT_EQ(file.metadata().at("note"), "x\ny");
  EXPECT_EQ(std::memcmp(file.at("a").bytes.data(), a.data(), sizeof a), 0);
  EXPECT_EQ(std::memcmp(file.at("b \"quoted\" é").bytes.data(), b.data(), sizeof b), 0);
  EXPECT_THAT(file.at("a").shape, ElementsAre(3, 1));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1)
      << "a temporary file is left";
}

TEST(Safetensors, StaysValidWhenMoved) {
  const std::filesystem::path path =
      std::filesystem::path(THALWEG_SOURCE_DIR) / "tests/data/primitives/fp8_e4m3.safetensors";
  SafetensorsFile first(path);
  const SafetensorsFile second = std::move(first);
  EXPECT_EQ(second.at("values").bytes.size(), 1024U);
}

TEST(Safetensors, NamesAMissingTensor) {
  const SafetensorsFile file(std::filesystem::path(THALWEG_SOURCE_DIR) /
                             "tests/data/primitives/ue8m0.safetensors");
  EXPECT_EQ(file.find("nothing"), nullptr);
  EXPECT_THROW(file.at("nothing"), InputError);
}

TEST(Safetensors, RefusesToWriteWhatItWouldNotRead) {
  const TemporaryFolder directory;
  const std::array<std::byte, 4> four{};
  const auto path = directory.path() / "out.safetensors";
  const StoredTensor wrong = {"a", DType::f32, {2}, four};
  const StoredTensor right = {"a", DType::f32, {1}, four};
  EXPECT_THROW(write_safetensors(path, std::vector{wrong}), InputError);
  EXPECT_THROW(write_safetensors(path, std::vector{right, right}), InputError);
  EXPECT_THROW(write_safetensors(directory.path() / "no/such/place", std::vector{right}), WorkError);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

struct Malformed {
  const char* name;
  std::string file;
  const char* subject;  // what the message names
  const char* problem;
};

std::string entry(const std::string& members, std::size_t data_bytes) {
  return file_of("{\"w\":{" + members + "}}", data_bytes);
}

std::string with_length(std::uint64_t length, std::size_t rest) {
  std::string file(8 + rest, ' ');
  std::memcpy(file.data(), &length, 8);
  return file;
}

const char* const kTwo = R"("dtype":"U8","shape":[2],"data_offsets":)";

std::vector<Malformed> malformed_files() {
  const std::string w = "\"w\"";
  const auto two = [](const std::string& first, const std::string& second, std::size_t bytes) {
    return file_of("{\"v\":{" + std::string(kTwo) + first + "},\"w\":{" + kTwo + second + "}}", bytes);
  };
  return {
      {"EmptyFile", "", "file.safetensors", "0 bytes"},
      {"SevenBytes", std::string(7, '\0'), "file.safetensors", "7 bytes"},
      {"HeaderLengthTwoTo63", with_length(std::uint64_t{1} << 63, 64), "file.safetensors",
       "9223372036854775808"},
      {"HeaderLengthAllOnes", with_length(~std::uint64_t{0}, 64), "file.safetensors", "18446744073709551615"},
      {"HeaderBeyondFile", with_length(100, 60), "file.safetensors", "40 bytes short"},
      {"HeaderCut", file_of(R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 0).substr(0, 40),
       "file.safetensors", "bytes short"},
      {"HeaderEmpty", with_length(0, 0), "header", "JSON object"},
      {"HeaderIsArray", file_of("[]", 0), "header", "JSON object"},
      {"HeaderIsNotJson", file_of("{\"w\":", 0), "w", "not valid JSON"},
      {"HeaderIsTwoDocuments", file_of("{}{}", 0), "file.safetensors", "not valid JSON"},
      {"HeaderBadUtf8", file_of("{\"\xff\":1}", 0), "file.safetensors", "not valid JSON"},
      {"HeaderNestedDeep", file_of("{\"w\":" + std::string(5000, '[') + std::string(5000, ']') + "}", 0), "w",
       "nested deeper"},
      {"DuplicateTensor",
       file_of(
           R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"w":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
           2),
       "w", "twice"},
      {"DuplicateMember", entry(R"("dtype":"U8","dtype":"I8","shape":[2],"data_offsets":[0,2])", 2), "dtype",
       "twice"},
      {"EntryIsNumber", file_of("{\"w\":3}", 0), "\"w\"", "an object"},
      {"DtypeMissing", entry(R"("shape":[2],"data_offsets":[0,2])", 2), "\"w\"", "\"dtype\" is missing"},
      {"ShapeMissing", entry(R"("dtype":"U8","data_offsets":[0,2])", 2), "\"w\"", "\"shape\" is missing"},
      {"OffsetsMissing", entry(R"("dtype":"U8","shape":[2])", 2), "\"w\"", "\"data_offsets\" is missing"},
      {"UnknownMember", entry(R"("dtype":"U8","shape":[2],"data_offsets":[0,2],"order":"F")", 2), "\"w\"",
       "order"},
      {"UnknownDtype", entry(R"("dtype":"F4","shape":[2],"data_offsets":[0,1])", 1), "\"w\"", "\"F4\""},
      {"DtypeIsNumber", entry(R"("dtype":8,"shape":[2],"data_offsets":[0,2])", 2), "\"w\"", "dtype"},
      {"ShapeIsNumber", entry(R"("dtype":"U8","shape":2,"data_offsets":[0,2])", 2), "\"w\"", "shape"},
      {"ShapeNegative", entry(R"("dtype":"U8","shape":[-2],"data_offsets":[0,2])", 2), "\"w\"", "-2"},
      {"ShapeFraction", entry(R"("dtype":"U8","shape":[2.0],"data_offsets":[0,2])", 2), "\"w\"", "2.0"},
      {"ShapeOverflow", entry(R"("dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,8])", 8),
       "\"w\"", "2^63"},
      {"ShapeHuge", entry(R"("dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,2])", 2), "\"w\"",
       "shape"},
      {"ShapeTooLong",
       entry(R"("dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,1])", 1), "\"w\"",
       "16"},
      {"OffsetsOne", entry(std::string(kTwo) + "[2]", 2), "\"w\"", "two byte offsets"},
      {"OffsetsNegative", entry(std::string(kTwo) + "[-2,0]", 2), "\"w\"", "data_offsets"},
      {"OffsetsBackwards", entry(std::string(kTwo) + "[2,0]", 2), "\"w\"", "end before"},
      {"OffsetsText", entry(std::string(kTwo) + "[\"0\",\"2\"]", 2), "\"w\"", "data_offsets"},
      {"SizeTooSmall", entry(std::string(kTwo) + "[0,1]", 1), "\"w\"", "expected 2 bytes"},
      {"SizeTooLarge", entry(std::string(kTwo) + "[0,3]", 3), "\"w\"", "expected 2 bytes"},
      {"Overlap", two("[0,2]", "[1,3]", 3), "\"w\"", "overlaps that of \"v\" by 1 bytes"},
      {"SameRange", two("[0,2]", "[0,2]", 2), "\"w\"", "overlaps"},
      {"Gap", two("[0,2]", "[3,5]", 5), "\"w\"", "gap of 1 bytes"},
      {"GapAtStart", entry(std::string(kTwo) + "[1,3]", 3), "\"w\"", "gap of 1 bytes"},
      {"TrailingBytes", entry(std::string(kTwo) + "[0,2]", 6), "file.safetensors", "4 trailing bytes"},
      {"Truncated", entry(std::string(kTwo) + "[0,2]", 1), "\"w\"", "1 of its 2 bytes are missing"},
      {"OffsetsBeyondFile", two("[0,2]", "[2,4]", 2), "\"w\"", "2 of its 2 bytes are missing"},
      {"MetadataIsList", file_of(R"({"__metadata__":[]})", 0), "__metadata__", "an object"},
      {"MetadataIsNested", file_of(R"({"__metadata__":{"a":{}}})", 0), "__metadata__.a", "a string"},
  };
}

class MalformedSafetensors : public ::testing::TestWithParam<Malformed> {};

TEST_P(MalformedSafetensors, IsRefusedByName) {
  EXPECT_THAT(refusal(GetParam().file), AllOf(HasSubstr("file.safetensors"), HasSubstr(GetParam().subject),
                                              HasSubstr(GetParam().problem)));
}

INSTANTIATE_TEST_SUITE_P(Table, MalformedSafetensors, ::testing::ValuesIn(malformed_files()),
                         [](const auto& param) { return param.param.name; });

// Every header length cut and every single flipped header byte either parses or is refused: nothing crashes.
TEST(Safetensors, SurvivesEveryCutAndEveryFlippedByte) {
  const std::string file = file_of(
      R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
      6);
  for (std::size_t n = 0; n < file.size(); ++n) EXPECT_NE(refusal(file.substr(0, n)), "accepted") << n;
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (const int flip : {0x01, 0x20, 0x80, 0xff}) {
      std::string spoiled = file;
      spoiled[i] = static_cast<char>(spoiled[i] ^ flip);
      EXPECT_FALSE(refusal(spoiled).empty());
    }
  }
}

}  // namespace
}  // namespace thalweg::checkpoint
