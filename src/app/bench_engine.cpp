// `thalweg bench decode`, `bench prefix` and `bench acceptance`: the engine and its speculation measured.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <numeric>
#include <random>
#include <sstream>

#include "app/commands.hpp"
#include "app/engine_options.hpp"
#include "app/generation.hpp"
#include "app/model_option.hpp"
#include "app/progress.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/mapped_file.hpp"
#include "bench/acceptance.hpp"
#include "bench/engine_bench.hpp"

namespace thalweg::app {
namespace {

struct DecodeOptions {
  EngineOptions engine;
  engine::EngineOptions serving;
  std::string prompts;
  std::vector<std::int32_t> requests = {1, 4, 16, 64};
  std::vector<std::string> speculate = {"off"};
  bench::DecodeLoad load;
  std::int32_t answers = 0;
  int rounds = 3;
  bool json = false;
};

std::vector<bench::BenchPrompt> read_bench_prompts(const std::string& given,
                                                   const engine::LoadedModel& model) {
  const std::string file = given.empty() ? (model.directory / "eval" / "tasks.jsonl").string() : given;
  if (given.empty() && !std::filesystem::exists(file)) {
    throw UsageError("--prompts: required, since the model's directory has no eval/tasks.jsonl");
  }
  std::vector<bench::BenchPrompt> prompts;
  std::istringstream lines(read_text_file(file));
  for (std::string text; std::getline(lines, text);) {
    const std::string subject = fmt::format("{}: line {}", file, prompts.size() + 1);
    const Json line = parse_json(text, subject);
    for (const char* name : {"kind", "prompt"}) {
      if (!line.is_object() || !line.contains(name) || !line[name].is_string()) {
        throw InputError(fmt::format("{}: {}", subject, name), "a string", "something else");
      }
    }
    prompts.push_back(
        {line["kind"].get<std::string>(), model.tokenizer.encode(line["prompt"].get<std::string>())});
  }
  if (prompts.empty()) throw InputError(file, "at least one prompt", "none");
  // One after another of every kind, so that few answers are of many kinds.
  std::mt19937_64 order(1);
  std::ranges::shuffle(prompts, order);
  return prompts;
}

Json by_position(const engine::EngineStatistics& statistics) {
  Json rates = Json::array();
  for (std::size_t i = 0; i < statistics.drafts_tried_at.size() && statistics.drafts_tried_at[i] > 0; ++i) {
    rates.push_back(static_cast<double>(statistics.drafts_accepted_at[i]) /
                    static_cast<double>(statistics.drafts_tried_at[i]));
  }
  return rates;
}

Json figures_json(const bench::DecodeFigures& f) {
  const engine::EngineStatistics& s = f.statistics;
  const auto steps = static_cast<double>(s.steps);
  return {{"tokens_per_second", f.tokens_per_second()},
          {"output_tokens", f.output_tokens},
          {"prompt_tokens", f.prompt_tokens},
          {"seconds", f.seconds},
          {"steps", s.steps},
          {"rows_per_step", static_cast<double>(s.rows) / steps},
          {"step_ms", 1e3 * s.device_seconds / steps},
          {"draft_ms", 1e3 * s.draft_seconds / steps},
          {"plan_us", 1e6 * s.plan_seconds / steps},
          {"results_us", 1e6 * (s.host_seconds - s.plan_seconds) / steps},
          {"gap_us", 1e6 * s.gap_seconds / steps},
          {"tokens_per_draw", f.tokens_per_draw()},
          {"acceptance_by_position", by_position(s)}};
}

void print_row(const Json& line) {
  fmt::print(
      "{:>8} {:<10} {:>9.0f} {:>7.2f} {:>8.2f} {:>9.2f} {:>8.3f} {:>8.3f} {:>8.1f} {:>8.1f} {:>8.1f}\n",
      line["requests"].get<int>(), line["speculate"].get<std::string>(),
      line["tokens_per_second"].get<double>(), line["speedup"].get<double>(),
      line["tokens_per_draw"].get<double>(), line["rows_per_step"].get<double>(),
      line["step_ms"].get<double>(), line["draft_ms"].get<double>(), line["plan_us"].get<double>(),
      line["results_us"].get<double>(), line["gap_us"].get<double>());
}

/// All ways to speculate at one load, in turn in every round, so that they meet the same machine.
std::vector<Json> run_load(const DecodeOptions& options, const engine::LoadedModel& model,
                           const std::vector<bench::BenchPrompt>& prompts,
                           const engine::EngineOptions& serving, std::int32_t requests, Progress& progress) {
  bench::DecodeLoad load = options.load;
  load.requests = requests;
  load.answers = options.answers > 0 ? options.answers : std::max(16, 2 * requests);
  std::vector<std::vector<bench::DecodeFigures>> figures(options.speculate.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < options.speculate.size(); ++i) {
      engine::EngineOptions with = serving;
      with.speculation = engine::parse_speculation(options.speculate[i]);
      figures[i].push_back(bench::run_decode(model, with, prompts, load));
      progress.advance();
    }
  }
  std::vector<Json> lines;
  double first = 0;
  for (std::size_t i = 0; i < options.speculate.size(); ++i) {
    std::ranges::sort(figures[i], {}, &bench::DecodeFigures::seconds);
    const bench::DecodeFigures& middle = figures[i][(figures[i].size() - 1) / 2];
    if (i == 0) first = middle.seconds;
    Json line = {{"requests", requests},
                 {"answers", load.answers},
                 {"speculate", options.speculate[i]},
                 {"rounds", options.rounds},
                 {"speedup", first / middle.seconds}};
    line.update(figures_json(middle));
    line["tokens_per_second_range"] = {figures[i].back().tokens_per_second(),
                                       figures[i].front().tokens_per_second()};
    lines.push_back(std::move(line));
  }
  return lines;
}

/// What becomes of drafts in texts of one kind: every draft of a block verified, one request after another.
Json run_kinds(const DecodeOptions& options, const engine::LoadedModel& model,
               const std::vector<bench::BenchPrompt>& prompts, engine::EngineOptions serving) {
  Json kinds = Json::object();
  serving.speculation = {engine::SpeculationOptions::Kind::fixed, model.model.config().draft.block_size};
  for (const bench::BenchPrompt& prompt : prompts) {
    if (kinds.contains(prompt.kind)) continue;
    std::vector<bench::BenchPrompt> same;
    std::ranges::copy_if(prompts, std::back_inserter(same),
                         [&](const auto& p) { return p.kind == prompt.kind; });
    bench::DecodeLoad load = options.load;
    load.answers = static_cast<std::int32_t>(same.size());
    const bench::DecodeFigures f = bench::run_decode(model, serving, same, load);
    kinds[prompt.kind] = {{"tokens_per_draw", f.tokens_per_draw()},
                          {"acceptance_by_position", by_position(f.statistics)}};
  }
  return kinds;
}

void print_kinds(const Json& kinds) {
  fmt::print("\nall drafts of a block verified, by kind of text:\n{:<16} {:>11}  acceptance by position\n",
             "kind", "tokens/step");
  for (const auto& [kind, figures] : kinds.items()) {
    fmt::print("{:<16} {:>11.2f} ", kind, figures["tokens_per_draw"].get<double>());
    for (const Json& rate : figures["acceptance_by_position"]) fmt::print(" {:.2f}", rate.get<double>());
    fmt::print("\n");
  }
}

void run_decode(const DecodeOptions& options) {
  for (const std::string& text : options.speculate) engine::parse_speculation(text);
  const auto model = load(options.engine);
  const auto prompts = read_bench_prompts(options.prompts, *model);
  engine::EngineOptions serving = options.serving;
  serving.device = backend::parse_device(options.engine.backend);
  serving.precision = model::parse_precision(options.engine.precision);
  serving.threads = options.engine.threads;
  Json result = {{"bench", "decode"},
                 {"model", model->directory.string()},
                 {"temperature", options.load.temperature},
                 {"ignore_eos", options.load.ignore_eos},
                 {"loads", Json::array()}};
  result["engine"] = engine::Engine(*model, serving).describe();
  if (!options.json) {
    fmt::print("{}\n{:>8} {:<10} {:>9} {:>7} {:>8} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8}\n",
               result["engine"].get<std::string>(), "requests", "speculate", "tokens/s", "speedup",
               "tok/step", "rows/step", "step ms", "draft ms", "plan us", "take us", "gap us");
  }
  Progress progress(
      "decoding", "runs",
      options.requests.size() * options.speculate.size() * static_cast<std::size_t>(options.rounds));
  for (const std::int32_t requests : options.requests) {
    for (const Json& line : run_load(options, *model, prompts, serving, requests, progress)) {
      result["loads"].push_back(line);
      if (!options.json) print_row(line);
    }
  }
  progress.finish();
  const bool drafts =
      std::ranges::any_of(options.speculate, [](const std::string& text) { return text != "off"; });
  if (drafts) {
    result["kinds"] = run_kinds(options, *model, prompts, serving);
    if (!options.json) print_kinds(result["kinds"]);
  }
  if (options.json) std::printf("%s\n", to_text(result).c_str());
}

struct PrefixOptions {
  EngineOptions engine;
  engine::EngineOptions serving;
  std::int32_t tokens = 1500;
  int rounds = 5;
  bool json = false;
};

void run_prefix(const PrefixOptions& options) {
  const auto model = load(options.engine);
  const checkpoint::ModelConfig& config = model->model.config();
  engine::EngineOptions serving = options.serving;
  serving.device = backend::parse_device(options.engine.backend);
  serving.precision = model::parse_precision(options.engine.precision);
  serving.threads = options.engine.threads;
  engine::Engine engine(*model, serving);
  if (options.tokens > engine.context()) {
    throw UsageError(fmt::format("--tokens: expected at most {} (the context), found {}", engine.context(),
                                 options.tokens));
  }
  std::vector<double> cold;
  std::vector<double> resumed;
  std::int64_t reused = 0;
  std::mt19937_64 random(1);
  for (int round = 0; round < options.rounds; ++round) {
    std::vector<std::int32_t> prompt{config.bos_token_id};
    while (std::ssize(prompt) < options.tokens) {
      const auto id = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(config.vocab_size));
      if (!model->tokenizer.is_added(id)) prompt.push_back(id);
    }
    const bench::ResumeFigures figures = bench::run_resume(engine, prompt);
    cold.push_back(figures.cold);
    resumed.push_back(figures.resumed);
    reused = figures.reused_tokens;
  }
  const double ratio = bench::median(resumed) / bench::median(cold);
  const Json result = {{"bench", "prefix"},
                       {"engine", engine.describe()},
                       {"tokens", options.tokens},
                       {"rounds", options.rounds},
                       {"reused_tokens", reused},
                       {"cold_seconds", bench::median(cold)},
                       {"resumed_seconds", bench::median(resumed)},
                       {"ratio", ratio}};
  if (options.json) {
    std::printf("%s\n", to_text(result).c_str());
    return;
  }
  fmt::print(
      "{}\nfirst token of a prompt of {} tokens (median of {}): cold {:.2f} ms, resumed ({} tokens reused) "
      "{:.2f} ms: 1/{:.1f}\n",
      engine.describe(), options.tokens, options.rounds, 1e3 * bench::median(cold), reused,
      1e3 * bench::median(resumed), 1 / ratio);
}

struct AcceptanceOptions {
  EngineOptions engine;
  std::string prompts;
  std::vector<double> temperatures = {0, 0.6, 1};
  std::int64_t tokens = 48;
  std::size_t texts = 24;
  bool json = false;
};

double tokens_a_step(const std::vector<double>& accepted) {
  return std::accumulate(accepted.begin(), accepted.end(), 1.0);
}

void run_acceptance(const AcceptanceOptions& options) {
  const auto model = load(options.engine);
  const checkpoint::ModelConfig& config = model->model.config();
  if (config.draft.layers == 0) {
    throw InputError((model->directory / "config.json").string() + ": text_config.num_nextn_predict_layers",
                     "a draft model", "0");
  }
  std::vector<std::vector<std::int32_t>> prompts;
  std::int64_t longest = 0;
  for (const bench::BenchPrompt& prompt : read_bench_prompts(options.prompts, *model)) {
    if (prompts.size() == options.texts) break;
    longest = std::max(longest, static_cast<std::int64_t>(prompt.tokens.size()));
    prompts.push_back(prompt.tokens);
  }
  const auto backend =
      make_single_backend(options.engine, *model, longest + options.tokens + 2 * config.draft.block_size);
  Json result = {{"bench", "acceptance"}, {"backend", backend->describe()}, {"temperatures", Json::array()}};
  Progress progress("drafting", "temperatures", options.temperatures.size());
  for (const double temperature : options.temperatures) {
    const bench::AcceptanceFigures f =
        bench::measure_acceptance(*backend, prompts, options.tokens, temperature);
    result["temperatures"].push_back({{"temperature", temperature},
                                      {"blocks", f.blocks},
                                      {"shared_noise", f.coupled},
                                      {"rejection", f.rejection},
                                      {"shared_noise_tokens_per_step", tokens_a_step(f.coupled)},
                                      {"rejection_tokens_per_step", tokens_a_step(f.rejection)}});
    progress.advance();
  }
  progress.finish();
  if (options.json) {
    std::printf("%s\n", to_text(result).c_str());
    return;
  }
  fmt::print("{}\n{:>11} {:<13} {:>11}  blocks accepted up to each position\n",
             result["backend"].get<std::string>(), "temperature", "verified by", "tokens/step");
  for (const Json& line : result["temperatures"]) {
    for (const char* way : {"shared_noise", "rejection"}) {
      fmt::print("{:>11} {:<13} {:>11.3f} ", line["temperature"].get<double>(), way,
                 line[std::string(way) + "_tokens_per_step"].get<double>());
      for (const Json& share : line[way]) fmt::print(" {:.3f}", share.get<double>());
      fmt::print("\n");
    }
  }
}

}  // namespace

void add_bench_decode(CLI::App& bench) {
  const auto options = std::make_shared<DecodeOptions>();
  CLI::App* command = bench.add_subcommand(
      "decode",
      "Tokens a second at several loads and ways to speculate, side by side; host time and gaps a step");
  add_engine_options(*command, options->engine);
  add_step_options(*command, options->serving);
  command
      ->add_option("--prompts", options->prompts,
                   "JSON lines {\"kind\", \"prompt\"} (default: the tasks that come with the model)")
      ->type_name("FILE");
  command->add_option("--requests", options->requests, "Requests at once, a list")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command
      ->add_option("--speculate", options->speculate,
                   "off, fixed:K, dynamic, adaptive: a list; speed-ups are against the first")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--answers", options->answers, "Answers of a run (default: 2 a request, at least 16)")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--max-tokens", options->load.max_tokens, "Tokens of an answer at most")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32))
      ->capture_default_str();
  command->add_flag("--ignore-eos", options->load.ignore_eos, "Every answer is --max-tokens long");
  command->add_option("--temperature", options->load.temperature, "Of sampling; 0 is greedy")
      ->check(CLI::Range(0.0, 2.0))
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "Runs of each case; the middle one counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { run_decode(*options); });
}

void add_bench_prefix(CLI::App& bench) {
  const auto options = std::make_shared<PrefixOptions>();
  CLI::App* command =
      bench.add_subcommand("prefix", "Time to the first token of a prompt, cold and from the cache");
  add_engine_options(*command, options->engine);
  add_serving_options(*command, options->serving);
  command->add_option("--tokens", options->tokens, "Length of the prompt")
      ->check(CLI::Range(2, 1 << 24))
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "Prompts; the middle time counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { run_prefix(*options); });
}

void add_bench_acceptance(CLI::App& bench) {
  const auto options = std::make_shared<AcceptanceOptions>();
  CLI::App* command = bench.add_subcommand(
      "acceptance", "Drafts accepted by shared noise (what the engine does) and by rejection sampling");
  add_engine_options(*command, options->engine);
  command
      ->add_option("--prompts", options->prompts,
                   "JSON lines {\"kind\", \"prompt\"} (default: the tasks that come with the model)")
      ->type_name("FILE");
  command->add_option("--temperatures", options->temperatures, "Temperatures, a list")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 2.0))
      ->capture_default_str();
  command->add_option("--tokens", options->tokens, "Tokens drawn behind each prompt, a block drafted at each")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20))
      ->capture_default_str();
  command->add_option("--texts", options->texts, "Prompts used at most")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { run_acceptance(*options); });
}

}  // namespace thalweg::app
