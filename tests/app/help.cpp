#include "app/help.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace thalweg::app {
namespace {

TEST(Wrap, BreaksAtBlanksAndIndentsTheLinesThatFollow) {
  EXPECT_EQ(wrap("one two three", 9, 2), "one two\n  three");
  EXPECT_EQ(wrap("one two", 80, 4), "one two");
  EXPECT_EQ(wrap("", 80, 4), "");
}

TEST(Wrap, LeavesWordsWhole) {
  EXPECT_EQ(wrap("a incomprehensibilities b", 10, 0), "a\nincomprehensibilities\nb");
}

TEST(Wrap, KeepsLineBreaksOfTheText) {
  EXPECT_EQ(wrap("one\ntwo", 80, 3), "one\n   two");
}

TEST(Wrap, FillsALineToItsLastColumn) {
  EXPECT_EQ(wrap("123 567 9", 9, 0), "123 567 9");
  EXPECT_EQ(wrap("123 567 90", 9, 0), "123 567\n90");
}

TEST(Help, PutsDescriptionsBesideOptionsWhereThereIsRoom) {
  CLI::App app;
  app.name("program");
  set_help_layout(app);  // standard output of a test is no terminal: 80 columns
  app.add_option("--size", "A description that is long enough to need more than one line of eighty columns");
  const std::string help = app.help();
  EXPECT_NE(help.find("  --size                    A description that is"), std::string::npos) << help;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(Help, NamesTheTypeOfACheckedNumberOnce) {
  CLI::App app;
  set_help_layout(app);
  std::size_t size = 0;
  app.add_option("--size", size, "")->check(CLI::Range(1, 8));
  EXPECT_NE(app.help().find("--size INT in [1 - 8]"), std::string::npos) << app.help();
}

}  // namespace
}  // namespace thalweg::app
