#include "app/configuration.hpp"

#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "app/settings.hpp"
#include "base/error.hpp"

namespace thalweg::app {
namespace {

constexpr const char* description =
    "Read options from a TOML file (keys are option names); options given here win";

/// The command that the arguments parsed so far chose.
const CLI::App* chosen_command(const CLI::App* app) {
  for (auto chosen = app->get_subcommands(); !chosen.empty(); chosen = app->get_subcommands())
    app = chosen.front();
  return app;
}

/// What CLI11 calls a formatter: it turns the text of a file into items, each addressed to a command.
class CommandConfig : public CLI::Config {
 public:
  explicit CommandConfig(const CLI::App* root) : root_(root) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    const std::string text{std::istreambuf_iterator<char>(input), {}};
    const std::string file = root_->get_config_ptr()->results().back();
    const CLI::App* command = chosen_command(root_);
    std::vector<std::string> path;
    for (const CLI::App* app = command; app != root_; app = app->get_parent()) {
      path.insert(path.begin(), app->get_name());
    }
    std::vector<CLI::ConfigItem> found;
    for (Setting& setting : parse_settings(text, file)) {
      check(setting, *command, file);
      if (setting.values.empty()) continue;  // an empty list leaves the option as it is
      found.push_back({path, setting.key, std::move(setting.values)});
    }
    return found;
  }

  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return {}; }

 private:
  static void check(const Setting& setting, const CLI::App& command, const std::string& file) {
    const auto fail = [&](const std::string& problem) {
      throw UsageError(fmt::format("{}:{}: {}", file, setting.line, problem));
    };
    const CLI::Option* option =
        setting.key.size() > 1 ? command.get_option_no_throw("--" + setting.key) : nullptr;
    if (option == nullptr || !option->get_configurable() || option == command.get_help_ptr()) {
      fail(fmt::format("\"{}\" is not an option of `{}`", setting.key, command.get_display_name()));
    }
    const bool flag = option->get_expected_min() == 0;
    if (flag != (setting.kind == Setting::Kind::boolean) || (flag && setting.array)) {
      fail(fmt::format("\"{}\" takes {}", setting.key,
                       flag ? "true or false" : "text or a number, not true or false"));
    }
    const bool repeats = option->get_expected_max() > 1 ||
                         option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
    if (setting.array && !repeats) {
      fail(fmt::format("\"{}\" takes one value, not a list", setting.key));
    }
  }

  const CLI::App* root_;
};

void add_option(CLI::App& command, CLI::Option* root_option) {
  const auto subcommands = command.get_subcommands([](const CLI::App*) { return true; });
  for (CLI::App* subcommand : subcommands) add_option(*subcommand, root_option);
  if (!subcommands.empty()) return;
  // CLI11 reads one file, that of the root, after all arguments; the option of the command hands its value
  // up.
  command
      .add_option_function<std::string>(
          "--config",
          [root_option](const std::string& file) {
            if (!root_option->empty()) throw UsageError("--config: given twice");
            root_option->add_result(file);
          },
          description)
      ->trigger_on_parse()
      ->type_name("FILE")
      ->configurable(false);
}

}  // namespace

void add_configuration(CLI::App& app) {
  app.config_formatter(std::make_shared<CommandConfig>(&app));
  CLI::Option* root_option = app.set_config("--config", "", description)->type_name("FILE");
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    add_option(*command, root_option);
}

}  // namespace thalweg::app
