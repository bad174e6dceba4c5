#include "base/mapped_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <utility>

#include "base/error.hpp"
#include "support/temporary_folder.hpp"

namespace thalweg {
namespace {

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

template <typename Action>
std::string input_error_of(Action action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(MappedFile, ShowsTheBytesOfTheFile) {
  const TemporaryFolder folder;
  const std::string content("one\0two\xFF", 8);
  const MappedFile file(folder.write("data", content));
  EXPECT_EQ(text_of(file), content);
  EXPECT_EQ(file.path(), folder.path() / "data");
}

TEST(MappedFile, EmptyFileHasNoBytes) {
  const TemporaryFolder folder;
  EXPECT_TRUE(MappedFile(folder.write("empty", "")).bytes().empty());
}

TEST(MappedFile, BytesStayWhereTheyAreAfterAMove) {
  const TemporaryFolder folder;
  MappedFile first(folder.write("first", "first content"));
  const std::byte* address = first.bytes().data();
  MappedFile second(std::move(first));
  EXPECT_EQ(second.bytes().data(), address);
  MappedFile third(folder.write("third", "third"));
  third = std::move(second);
  EXPECT_EQ(third.bytes().data(), address);
  EXPECT_EQ(text_of(third), "first content");
}

TEST(MappedFile, StaysReadableAfterTheFileIsRemoved) {
  const TemporaryFolder folder;
  const MappedFile file(folder.write("data", "content"));
  std::filesystem::remove(file.path());
  EXPECT_EQ(text_of(file), "content");
}

TEST(MappedFile, NamesTheFileThatCannotBeOpened) {
  const TemporaryFolder folder;
  const std::string missing = (folder.path() / "missing").string();
  EXPECT_EQ(input_error_of([&] { MappedFile file(missing); }),
            missing + ": cannot open: No such file or directory");
}

TEST(MappedFile, RefusesWhatIsNoRegularFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(input_error_of([&] { MappedFile file(folder.path()); }),
            folder.path().string() + ": not a regular file");
  EXPECT_EQ(input_error_of([] { MappedFile file("/dev/null"); }), "/dev/null: not a regular file");
}

TEST(ReadTextFile, ReturnsTheWholeFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_text_file(folder.write("a", "some\r\ntext\n")), "some\r\ntext\n");
  EXPECT_EQ(read_text_file(folder.write("b", "")), "");
}

TEST(ReadTextFile, RefusesAFileOverTheLimit) {
  const TemporaryFolder folder;
  const auto file = folder.write("large", "12345");
  EXPECT_EQ(read_text_file(file, 5), "12345");
  EXPECT_EQ(input_error_of([&] { read_text_file(file, 4); }),
            file.string() + ": expected at most 4 bytes, found 5 bytes");
}

}  // namespace
}  // namespace thalweg
