// `thalweg inspect flops`: the arithmetic of steps, counted.
#include <iostream>
#include <memory>
#include <string>

#include "app/case_reader.hpp"
#include "app/commands.hpp"
#include "app/model_option.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/mapped_file.hpp"
#include "checkpoint/config.hpp"
#include "model/flops.hpp"

namespace thalweg::app {
namespace {

struct Options {
  std::string file;
  std::string model;
};

// Beyond, sums could leave 64 bits.
constexpr std::int64_t max_positions = std::int64_t{1} << 24;

model::FlopsStep step_of(const CaseReader& c) {
  c.allow_only({"replay", "keep", "q", "k", "prompt", "full_len", "swa_valid_start", "attention", "total"});
  model::FlopsStep step;
  step.context = c.integer("k", 1, max_positions);
  step.rows = c.integer("q", 1, step.context);
  step.prompt = c.boolean("prompt");
  step.prompt_length = c.integer("full_len", step.prompt ? step.context : 0, max_positions);
  step.keep = c.integer("keep", 0, max_positions);
  step.window_start = c.integer("swa_valid_start", 0, max_positions);
  const std::string replay = c.text("replay", {"off", "mask", "compact"});
  step.replay = replay == "off"    ? model::FlopsReplay::off
                : replay == "mask" ? model::FlopsReplay::mask
                                   : model::FlopsReplay::compact;
  return step;
}

void run(const Options& options) {
  const Json root = parse_json(read_text_file(options.file), options.file);
  const CaseReader file(root, options.file);
  file.allow_only({"format", "version", "split", "notes", "cases"});
  const model::FlopsShape shape =
      options.model.empty()
          ? model::released_flops_shape()
          : model::flops_shape(checkpoint::load_config(model_directory(options.model) / "config.json"));
  Json answers = Json::array();
  for (const CaseReader& c : file.objects("cases")) {
    const model::Flops flops = model::count_flops(shape, step_of(c));
    answers.push_back(Json{{"attention", flops.attention}, {"total", flops.total}});
  }
  std::cout << to_text(answers) << std::endl;
  if (!std::cout) throw WorkError("standard output: write failed");
}

}  // namespace

void add_inspect_flops(CLI::App& inspect) {
  CLI::App* command = inspect.add_subcommand(
      "flops", "Count the arithmetic of steps: {\"cases\": [...]} in, [{\"attention\", \"total\"}...] out");
  auto options = std::make_shared<Options>();
  command->add_option("FILE", options->file, "JSON file with the cases")->required();
  command
      ->add_option("--model", options->model, "Checkpoint whose sizes count (default: the released model's)")
      ->type_name("DIR");
  command->add_flag("--json")->description("Changes nothing: the output is always JSON");
  command->callback([options] { run(*options); });
}

}  // namespace thalweg::app
