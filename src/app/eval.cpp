// `thalweg eval`: perplexity and task accuracy of a checkpoint, and what a mode or precision changes of them.
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <memory>
#include <sstream>

#include "app/commands.hpp"
#include "app/engine_options.hpp"
#include "app/model_option.hpp"
#include "app/progress.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/mapped_file.hpp"
#include "bench/evaluation.hpp"

namespace thalweg::app {
namespace {

struct Options {
  EngineOptions engine;
  std::string mode = "exact";
  std::int64_t replay_keep = 0;
  std::vector<std::string> texts;
  std::string tasks;
  bench::TextOptions text;
  bool json = false;
};

std::string string_member(const Json& line, const char* name, const std::string& subject) {
  if (!line.contains(name) || !line[name].is_string()) {
    throw InputError(subject + ": " + name, "a string",
                     line.contains(name) ? line[name].type_name() : "nothing");
  }
  return line[name].get<std::string>();
}

std::vector<bench::Task> read_tasks(const std::string& file, const engine::LoadedModel& model) {
  std::vector<bench::Task> tasks;
  std::istringstream lines(read_text_file(file));
  int number = 0;
  for (std::string text; std::getline(lines, text);) {
    ++number;
    if (text.empty()) continue;
    const std::string subject = fmt::format("{}: line {}", file, number);
    const Json line = parse_json(text, subject);
    if (!line.is_object()) throw InputError(subject, "an object", line.type_name());
    for (const auto& [name, value] : line.items()) {
      if (name != "kind" && name != "prompt" && name != "answer")
        throw InputError(subject + ": " + name, "unknown member");
    }
    tasks.push_back({string_member(line, "kind", subject),
                     model.tokenizer.encode(string_member(line, "prompt", subject)),
                     string_member(line, "answer", subject)});
    const auto length = static_cast<std::int64_t>(tasks.back().prompt.size());
    const std::int64_t most = model.model.config().max_position_embeddings / 2;
    if (length == 0 || length > most) {
      throw InputError(subject + ": prompt", fmt::format("1 to {} tokens", most), std::to_string(length));
    }
  }
  if (tasks.empty()) throw InputError(file, "at least one task", "none");
  return tasks;
}

Json loss_json(const bench::TextLoss& loss) {
  return {{"tokens", loss.tokens},
          {"loss", loss.per_token()},
          {"perplexity", loss.perplexity()},
          {"bits_per_byte", loss.bits_per_byte()}};
}

Json text_json(const std::string& file, const bench::TextResult& result) {
  Json json = {{"file", file}, {"windows", result.windows}, {"whole", loss_json(result.whole)}};
  if (!result.difference) return json;
  const bench::Difference& d = *result.difference;
  const auto tokens = static_cast<double>(d.exact.tokens);
  json["compared"] = {{"exact", loss_json(d.exact)},
                      {"other", loss_json(d.other)},
                      {"kl_mean", d.kl_sum / tokens},
                      {"kl_max", d.kl_max},
                      {"logit_difference_max", d.logit_max},
                      {"same_best_token", static_cast<double>(d.same_best) / tokens},
                      {"exact_prompt_seconds", d.exact_seconds},
                      {"other_prompt_seconds", d.other_seconds},
                      {"prompt_time_ratio", d.other_seconds / d.exact_seconds}};
  return json;
}

// Accuracy by kind: {"kind": {"tasks", "exact", "other"}}.
Json run_tasks(const std::vector<bench::Task>& tasks, const engine::LoadedModel& model,
               const bench::Computation& exact, const std::optional<bench::Computation>& other) {
  struct Count {
    int tasks = 0, exact = 0, other = 0;
  };
  std::map<std::string, Count> counts;
  Progress progress("answering", "tasks", tasks.size());
  for (const bench::Task& task : tasks) {
    for (Count* count : {&counts[task.kind], &counts["all"]}) ++count->tasks;
    const bool right = bench::solves(model.tokenizer, task, exact);
    const bool other_right = other && bench::solves(model.tokenizer, task, *other);
    for (Count* count : {&counts[task.kind], &counts["all"]}) {
      count->exact += right ? 1 : 0;
      count->other += other_right ? 1 : 0;
    }
    progress.advance();
  }
  progress.finish();
  Json json = Json::object();
  for (const auto& [kind, count] : counts) {
    json[kind] = {{"tasks", count.tasks}, {"exact", double{1} * count.exact / count.tasks}};
    if (other) json[kind]["other"] = double{1} * count.other / count.tasks;
  }
  return json;
}

void print_text(const Json& text) {
  const Json& whole = text["whole"];
  fmt::print("{}: {} windows, {} tokens predicted\n", text["file"].get<std::string>(),
             text["windows"].get<int>(), whole["tokens"].get<int>());
  fmt::print("  exact                 loss {:.4f}, perplexity {:.2f}, {:.3f} bits a byte\n",
             whole["loss"].get<double>(), whole["perplexity"].get<double>(),
             whole["bits_per_byte"].get<double>());
  if (!text.contains("compared")) return;
  const Json& c = text["compared"];
  fmt::print("  tokens after a prompt perplexity {:.3f}, exact {:.3f}\n",
             c["other"]["perplexity"].get<double>(), c["exact"]["perplexity"].get<double>());
  fmt::print(
      "  divergence (KL, nats) mean {:.2e}, largest {:.2e}; largest difference of a logit {:.3g}; same best "
      "token {:.2f} %\n",
      c["kl_mean"].get<double>(), c["kl_max"].get<double>(), c["logit_difference_max"].get<double>(),
      100 * c["same_best_token"].get<double>());
  fmt::print("  time of the prompts   {:.2f} s, exact {:.2f} s: {:.0f} %\n",
             c["other_prompt_seconds"].get<double>(), c["exact_prompt_seconds"].get<double>(),
             100 * c["prompt_time_ratio"].get<double>());
}

void print(const Json& result) {
  fmt::print("{}\n", result["computed"].get<std::string>());
  for (const Json& text : result["texts"]) print_text(text);
  if (!result.contains("tasks")) return;
  fmt::print("{:<16} {:>6} {:>8}{}\n", "tasks", "number", "exact",
             result.contains("compared_with_exact") ? "    other" : "");
  for (const auto& [kind, count] : result["tasks"].items()) {
    fmt::print("{:<16} {:>6} {:>8.3f}", kind, count["tasks"].get<int>(), count["exact"].get<double>());
    if (count.contains("other")) fmt::print(" {:>8.3f}", count["other"].get<double>());
    fmt::print("\n");
  }
}

void check(const Options& options, const checkpoint::ModelConfig& config) {
  if (options.text.window > config.max_position_embeddings) {
    throw UsageError(fmt::format("--window: expected at most {} (the model's context), found {}",
                                 config.max_position_embeddings, options.text.window));
  }
  if (options.text.continuation >= options.text.window) {
    throw UsageError(fmt::format("--continuation: expected less than --window ({}), found {}",
                                 options.text.window, options.text.continuation));
  }
  if (options.mode != "replay" && options.replay_keep > 0)
    throw UsageError("--replay-keep: only with --mode replay");
}

// Without files of the caller's: those that come with the bundled checkpoint.
void default_files(Options& options) {
  if (!options.texts.empty() || !options.tasks.empty()) return;
  const std::filesystem::path folder = model_directory(options.engine.model) / "eval";
  if (!std::filesystem::is_directory(folder)) {
    throw UsageError("--text, --tasks: give at least one; the model's directory has no eval/ of its own");
  }
  options.texts = {(folder / "text.txt").string()};
  options.tasks = (folder / "tasks.jsonl").string();
}

void run(Options options) {
  default_files(options);
  const auto model = load(options.engine);
  const checkpoint::ModelConfig& config = model->model.config();
  check(options, config);
  const std::int64_t keep = replay_keep_of(config, options.replay_keep);
  EngineOptions reference = options.engine;
  reference.precision = "reference";
  const bool same_precision = options.engine.precision == reference.precision;
  const auto exact_backend = make_single_backend(reference, *model, config.max_position_embeddings);
  const auto other_backend =
      same_precision ? nullptr : make_single_backend(options.engine, *model, config.max_position_embeddings);
  const bench::Computation exact{exact_backend.get(), {}};
  std::optional<bench::Computation> other;
  if (!same_precision || options.mode == "replay") {
    other = bench::Computation{same_precision ? exact_backend.get() : other_backend.get(), {}};
    if (options.mode == "replay") other->replay_keep = keep;
  }

  Json result = {{"model", model->directory.string()},
                 {"computed", exact_backend->describe() + ", mode exact"}};
  if (other) {
    std::string what = other->backend->describe();
    what += other->replay_keep ? fmt::format(", replay of the last {} tokens", keep) : ", mode exact";
    result["compared_with_exact"] = what;
    result["computed"] = fmt::format("exact: {}; other: {}", exact_backend->describe(), what);
  }
  result["window"] = options.text.window;
  result["continuation"] = options.text.continuation;
  result["texts"] = Json::array();
  for (const std::string& file : options.texts) {
    const std::string text = read_text_file(file);
    Progress progress("reading " + file, "windows", {});
    options.text.on_window = [&progress] { progress.advance(); };
    result["texts"].push_back(
        text_json(file, bench::evaluate_text(model->tokenizer, text, file, exact, other, options.text)));
    progress.finish();
  }
  if (!options.tasks.empty())
    result["tasks"] = run_tasks(read_tasks(options.tasks, *model), *model, exact, other);
  if (options.json) {
    std::printf("%s\n", to_text(result).c_str());
  } else {
    print(result);
  }
}

}  // namespace

void add_eval(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "eval",
      "Perplexity and task accuracy on files; what a mode or precision changes of them, against exact");
  add_engine_options(*command, options->engine);
  command
      ->add_option("--text", options->texts,
                   "Text file to predict (may be repeated; default: the model's own)")
      ->type_name("FILE");
  command
      ->add_option("--tasks", options->tasks,
                   "JSON lines {\"kind\", \"prompt\", \"answer\"}: greedy answers must be equal")
      ->type_name("FILE");
  command->add_option("--mode", options->mode, "exact, or replay: compared with exact")
      ->check(CLI::IsMember({"exact", "replay"}))
      ->capture_default_str();
  command
      ->add_option("--replay-keep", options->replay_keep,
                   "Tokens that replay keeps (default: window + 2 x backtracking)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  command->add_option("--window", options->text.window, "Tokens of the pieces that a text is cut into")
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{1} << 40))
      ->capture_default_str();
  command
      ->add_option("--continuation", options->text.continuation,
                   "Tokens at the end of each piece that are compared; what comes before is their prompt")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  command->add_option("--limit", options->text.limit, "Pieces of a text at most")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { run(*options); });
}

}  // namespace thalweg::app
