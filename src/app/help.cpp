#include "app/help.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

namespace thalweg::app {
namespace {

constexpr std::size_t narrow = 60;      // columns below which two columns are unreadable
constexpr std::size_t name_width = 28;  // of the left column on a wide terminal

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::size_t columns) : columns_(columns) {}

  std::string make_description(const CLI::App* app) const override {
    const std::string text = app->get_description();
    return text.empty() ? text : wrap(text, columns_, 0) + "\n";
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    while (!usage.empty() && usage.back() == '\n') usage.pop_back();
    return wrap(usage, columns_, 2) + "\n";
  }

  std::string make_footer(const CLI::App* app) const override {
    const std::string text = app->get_footer();
    return text.empty() ? text : wrap(text, columns_, 0) + "\n";
  }

  std::string make_option(const CLI::Option* option, bool positional) const override {
    return entry(make_option_name(option, positional) + make_option_opts(option), make_option_desc(option));
  }

  // CLI11 writes the type of a checked number twice: "UINT:INT in [1 - 8]".
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    for (const char* range : {":INT in [", ":UINT in [", ":FLOAT in ["}) {
      const auto colon = text.find(range);
      if (colon == std::string::npos) continue;
      const auto type = text.rfind(' ', colon) + 1;
      text.erase(type, colon + 1 - type);
    }
    return text;
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return entry(command->get_display_name(true), command->get_description());
  }

 private:
  std::string entry(const std::string& name, const std::string& description) const {
    const bool below = columns_ < narrow || name.size() + 4 > name_width;
    const std::size_t indent = columns_ < narrow ? 6 : name_width;
    std::string out = "  " + wrap(name, columns_, 4);
    if (description.empty()) return out + "\n";
    out += below ? "\n" + std::string(indent, ' ') : std::string(indent - 2 - name.size(), ' ');
    return out + wrap(description, columns_, indent) + "\n";
  }

  std::size_t columns_;
};

}  // namespace

std::size_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return std::clamp<std::size_t>(size.ws_col, 30, 110);
}

std::string wrap(std::string_view text, std::size_t columns, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  const auto break_line = [&] {
    out += '\n';
    out.append(indent, ' ');
    column = indent;
  };
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find_first_of(" \n"));
    if (column > indent && column + 1 + word.size() > columns) {
      break_line();
    } else if (column > indent && !word.empty()) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    if (word.size() == text.size()) break;
    if (text[word.size()] == '\n') break_line();
    text.remove_prefix(word.size() + 1);
  }
  return out;
}

void set_help_layout(CLI::App& app) {
  app.formatter(std::make_shared<HelpFormatter>(terminal_columns()));
}

}  // namespace thalweg::app
