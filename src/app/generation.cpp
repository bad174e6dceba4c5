#include "app/generation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "serve/output_constraint.hpp"
#include "text/chat_encoding.hpp"
#include "text/special_tokens.hpp"
#include "wire/chat_completions.hpp"
#include "wire/read_request.hpp"
#include "wire/request_error.hpp"

namespace thalweg::app {
namespace {

engine::SamplingParams sampling_params(const SamplingOptions& options) {
  engine::SamplingParams params;
  params.temperature = options.temperature;
  params.top_p = options.top_p;
  params.top_k = options.top_k;
  params.min_p = options.min_p;
  params.repetition_penalty = options.repetition_penalty;
  params.presence_penalty = options.presence_penalty;
  params.frequency_penalty = options.frequency_penalty;
  params.seed = options.seed;
  params.max_tokens = options.max_tokens;
  params.min_tokens = options.min_tokens;
  params.n = options.n;
  params.logprobs = options.logprobs;
  params.ignore_eos = options.ignore_eos;
  return params;
}

template <class T>
void take(Json& line, const char* name, const std::string& subject, T& value) {
  const auto found = line.find(name);
  if (found == line.end() || found->is_null()) return;
  const bool fits = std::is_same_v<T, bool>            ? found->is_boolean()
                    : std::is_floating_point_v<T>      ? found->is_number()
                    : std::is_same_v<T, std::uint64_t> ? found->is_number_unsigned()
                                                       : found->is_number_integer();
  if (!fits) {
    throw InputError(subject + ": " + name,
                     std::is_same_v<T, bool>       ? "a boolean"
                     : std::is_floating_point_v<T> ? "a number"
                                                   : "an integer",
                     to_text(*found).substr(0, 40));
  }
  if constexpr (std::is_same_v<T, std::int32_t>) {
    const auto wide = found->template get<std::int64_t>();
    if (wide != static_cast<std::int32_t>(wide))
      throw InputError(subject + ": " + name, "a smaller number", to_text(*found));
  }
  value = found->template get<T>();
  line.erase(found);
}

template <class T>
void take(Json& line, const char* name, const std::string& subject, std::optional<T>& value) {
  const auto found = line.find(name);
  if (found == line.end() || found->is_null()) return;
  T plain{};
  take(line, name, subject, plain);
  value = plain;
}

}  // namespace

void add_sampling_options(CLI::App& command, SamplingOptions& options) {
  command.add_option("--temperature", options.temperature, "0 is greedy")->capture_default_str();
  command.add_option("--top-p", options.top_p, "Keep the most likely tokens up to this mass")
      ->capture_default_str();
  command.add_option("--top-k", options.top_k, "Keep the k most likely tokens; 0: all")
      ->capture_default_str();
  command.add_option("--min-p", options.min_p, "Keep tokens this likely relative to the best")
      ->capture_default_str();
  command.add_option("--repetition-penalty", options.repetition_penalty, "1: off")->capture_default_str();
  command.add_option("--presence-penalty", options.presence_penalty, "0: off")->capture_default_str();
  command.add_option("--frequency-penalty", options.frequency_penalty, "0: off")->capture_default_str();
  command.add_option("--seed", options.seed, "Random stream; a token depends on seed and position alone")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--max-tokens", options.max_tokens, "Tokens to generate at most")->capture_default_str();
  command.add_option("--min-tokens", options.min_tokens, "No end before this many tokens")
      ->capture_default_str();
  command.add_option("--n", options.n, "Independent answers to one prompt")->capture_default_str();
  command.add_option("--logprobs", options.logprobs,
                     "Log-probabilities with this many alternatives (in --json)");
  command.add_option("--stop", options.stop, "Text that ends the answer; may be given several times")
      ->expected(1)
      ->take_all();
  command.add_flag("--ignore-eos", options.ignore_eos, "Go on after the end-of-sequence token");
}

namespace {

// Only one of them: a second is refused by its name.
void set_constraint(SamplingOptions& options, const std::string& name, grammar::Constraint constraint) {
  if (options.constraint)
    throw UsageError(name + ": only one of --json-schema, --json-object, --regex, --grammar, --choice");
  options.constraint = std::move(constraint);
}

}  // namespace

void add_constraint_options(CLI::App& command, SamplingOptions& options) {
  using Kind = grammar::Constraint::Kind;
  command
      .add_option_function<std::string>(
          "--json-schema",
          [&options](const std::string& file) {
            set_constraint(options, "--json-schema",
                           {.kind = Kind::json_schema, .text = read_text_file(file), .field = file});
          },
          "The answer is JSON valid for the schema of this file")
      ->type_name("FILE");
  command.add_flag_callback(
      "--json-object", [&options] { set_constraint(options, "--json-object", {.kind = Kind::json_object}); },
      "The answer is one JSON object");
  command
      .add_option_function<std::string>(
          "--regex",
          [&options](const std::string& text) {
            set_constraint(options, "--regex", {.kind = Kind::regex, .text = text, .field = "--regex"});
          },
          "The whole answer matches this expression")
      ->type_name("TEXT");
  command
      .add_option_function<std::string>(
          "--grammar",
          [&options](const std::string& file) {
            set_constraint(options, "--grammar",
                           {.kind = Kind::ebnf, .text = read_text_file(file), .field = file});
          },
          "The answer follows the EBNF grammar of this file, from its rule root")
      ->type_name("FILE");
  command
      .add_option_function<std::vector<std::string>>(
          "--choice",
          [&options](const std::vector<std::string>& texts) {
            set_constraint(options, "--choice",
                           {.kind = Kind::choice, .choices = texts, .field = "--choice"});
          },
          "The answer is this text, or another that is given so")
      ->expected(1)
      ->take_all()
      ->type_name("TEXT");
}

void check_sampling_options(const SamplingOptions& options) {
  engine::SamplingParams params = sampling_params(options);
  params.stop_strings = options.stop;
  try {
    engine::validate(params, std::numeric_limits<std::int32_t>::max());
  } catch (const InputError& error) {
    const std::string& field = error.subject();
    std::string name = field.starts_with("stop_strings") ? "stop" : field;
    std::replace(name.begin(), name.end(), '_', '-');
    throw UsageError("--" + name + std::string(error.what()).substr(field.size()));
  }
}

void add_serving_options(CLI::App& command, engine::EngineOptions& options) {
  command
      .add_option_function<std::string>(
          "--speculate",
          [&options](const std::string& text) { options.speculation = engine::parse_speculation(text); },
          "off, fixed:K, dynamic or adaptive; changes speed, never the output")
      ->default_str("off");
  command.add_option("--sequences", options.sequences, "Sequences running at once")->capture_default_str();
  add_step_options(command, options);
}

void add_step_options(CLI::App& command, engine::EngineOptions& options) {
  command
      .add_option_function<std::string>(
          "--mode",
          [&options](const std::string& mode) {
            options.mode = mode == "exact" ? cache::ReuseMode::exact : cache::ReuseMode::replay;
          },
          "exact, or replay: decoder layers see only the prompt's tail (approximate)")
      ->check(CLI::IsMember({"exact", "replay"}))
      ->default_str("exact");
  command
      .add_option("--replay-keep", options.replay_keep,
                  "Tokens that replay keeps (0: window + 2 x backtracking)")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--batch-tokens", options.batch_tokens, "Rows of one step at most")
      ->capture_default_str();
  command
      .add_option("--context", options.context,
                  "Tokens of a sequence at most (0: what model and cache allow)")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--cache-tokens", options.cache_tokens, "Tokens of global KV in device memory (0: 65536)")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--snapshots", options.snapshots,
                  "Places in prompts kept on the device to resume at (-1: 2 a sequence)")
      ->check(CLI::Range(-1, 1 << 16));
  command
      .add_option("--snapshot-every", options.snapshot_every,
                  "Tokens between places where a prompt can be resumed")
      ->capture_default_str();
  command
      .add_option("--host-cache", options.host_cache_bytes,
                  "Host memory for prefixes and preempted sequences, e.g. 512MB (0: none)")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  command
      .add_option("--step-costs", options.step_costs,
                  "File that keeps measured step times for --speculate dynamic and adaptive over restarts")
      ->type_name("FILE");
  command.add_option("--disk-cache", options.disk_cache, "Folder that keeps prefixes over restarts");
  command
      .add_option("--disk-cache-size", options.disk_cache_bytes,
                  "Bytes that --disk-cache may take, e.g. 10GB")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  command.add_flag("--synchronous{false}", options.asynchronous,
                   "Plan a step only when the one before is done");
}

engine::Request raw_request(const engine::LoadedModel& model, const std::string& prompt,
                            const SamplingOptions& sampling) {
  engine::Request request;
  request.prompt.push_back(model.model.config().bos_token_id);
  const auto ids = model.tokenizer.encode(prompt);
  // A prompt that already spells BOS gets no second one.
  const bool has_bos = !ids.empty() && ids.front() == model.model.config().bos_token_id;
  request.prompt.insert(request.prompt.end(), ids.begin() + (has_bos ? 1 : 0), ids.end());
  request.sampling = sampling_params(sampling);
  request.sampling.stop_strings = sampling.stop;
  request.constraint = sampling.constraint;
  return request;
}

Json user_body(const std::string& system, const std::string& user, bool thinking,
               const std::optional<int>& effort) {
  Json body;
  body["model"] = wire::Policy{}.model_names.front();
  Json messages = Json::array();
  if (!system.empty()) messages.push_back({{"role", "system"}, {"content", system}});
  messages.push_back({{"role", "user"}, {"content", user}});
  body["messages"] = std::move(messages);
  body["thinking"] = {{"type", thinking ? "enabled" : "disabled"}};
  if (thinking && effort) body["reasoning_effort"] = *effort;
  return body;
}

engine::Request chat_request(const engine::LoadedModel& model, const Json& body, const std::string& subject,
                             const SamplingOptions& sampling) {
  wire::Policy policy;
  policy.max_choices = engine::SamplingLimits::max_choices;
  const auto specials = text::find_special_tokens(model.tokenizer);
  try {
    Json with_model = body;
    if (body.is_object() && !body.contains("model")) with_model["model"] = policy.model_names.front();
    wire::Request read = wire::read_chat_completions(with_model, policy);
    for (const std::string& field : read.ignored_fields) {
      std::fprintf(stderr, "thalweg: %s: %s has no effect here\n", subject.c_str(), field.c_str());
    }
    const text::Prompt prompt = text::render(read.conversation);
    if (!prompt.images.empty()) throw InputError(subject + ": messages", "images are not supported yet");
    engine::Request request;
    request.prompt = text::encode(prompt, model.tokenizer, specials);
    request.sampling = sampling_params(sampling);
    // What the body says itself goes before the flags.
    if (body.contains("temperature")) request.sampling.temperature = read.inference.temperature;
    if (body.contains("top_p")) request.sampling.top_p = read.inference.top_p;
    if (read.inference.max_tokens) request.sampling.max_tokens = *read.inference.max_tokens;
    if (read.inference.seed) request.sampling.seed = read.inference.seed;
    if (read.inference.choices > 1) request.sampling.n = static_cast<std::int32_t>(read.inference.choices);
    if (read.inference.logprobs)
      request.sampling.logprobs = static_cast<std::int32_t>(read.inference.top_logprobs.value_or(0));
    request.constraint = serve::output_constraint(read, specials, "response_format");
    if (sampling.constraint) {
      if (request.constraint) throw InputError(subject, "one constraint", "another in the flags");
      request.constraint = sampling.constraint;
      if (read.conversation.thinking) request.constraint->after_token = specials.end_think;
    }
    request.parse = std::move(read.parsing);
    for (const std::string& stop : sampling.stop) request.parse->stop_sequences.push_back(stop);
    return request;
  } catch (const wire::RequestError& error) {
    throw InputError(subject, error.what());
  }
}

SamplingOptions take_sampling(Json& line, const SamplingOptions& defaults, const std::string& subject) {
  SamplingOptions options = defaults;
  take(line, "temperature", subject, options.temperature);
  take(line, "top_p", subject, options.top_p);
  take(line, "top_k", subject, options.top_k);
  take(line, "min_p", subject, options.min_p);
  take(line, "repetition_penalty", subject, options.repetition_penalty);
  take(line, "presence_penalty", subject, options.presence_penalty);
  take(line, "frequency_penalty", subject, options.frequency_penalty);
  take(line, "seed", subject, options.seed);
  take(line, "max_tokens", subject, options.max_tokens);
  take(line, "min_tokens", subject, options.min_tokens);
  take(line, "n", subject, options.n);
  take(line, "logprobs", subject, options.logprobs);
  take(line, "ignore_eos", subject, options.ignore_eos);
  if (const auto found = line.find("stop"); found != line.end()) {
    const Json stops = found->is_array() ? *found : Json::array({*found});
    options.stop.clear();
    for (const Json& stop : stops) {
      if (!stop.is_string())
        throw InputError(subject + ": stop", "a string or a list of strings", to_text(*found).substr(0, 40));
      options.stop.push_back(stop.get<std::string>());
    }
    line.erase("stop");
  }
  return options;
}

Answers::Answers(const engine::Request& request)
    : chat_(request.parse.has_value()),
      wants_logprobs_(request.sampling.logprobs.has_value()),
      open_(static_cast<std::size_t>(request.sampling.n)),
      answers_(static_cast<std::size_t>(request.sampling.n)) {}

bool Answers::add(const engine::Event& event) {
  Answer& answer = answers_[static_cast<std::size_t>(event.choice)];
  if (event.token) answer.tokens.push_back(*event.token);
  answer.text += event.text;
  for (const text::ParseEvent& piece : event.parsed) {
    answer.message.add(piece);
    if (piece.kind == text::ParseEvent::Kind::content) answer.text += piece.text;
  }
  if (event.logprobs != nullptr && event.token) {
    Json top = Json::array();
    for (const engine::TokenLogprob& other : event.logprobs->raw.top)
      top.push_back({{"token", other.token}, {"logprob", other.logprob}});
    answer.logprobs.push_back(
        {{"token", *event.token}, {"logprob", event.logprobs->raw.chosen}, {"top", top}});
  }
  if (!event.finish) return false;
  answer.finish = event.finish;
  answer.stop_string = event.stop_string;
  answer.error = event.error;
  if (chat_) {
    answer.parsed = answer.message.finish(*event.finish == engine::Finish::stop ? text::BackendFinish::stop
                                          : *event.finish == engine::Finish::length
                                              ? text::BackendFinish::length
                                              : text::BackendFinish::insufficient_system_resource);
  }
  const std::int64_t output = usage_.output_tokens + event.usage.output_tokens;
  usage_ = event.usage;
  usage_.output_tokens = output;
  return --open_ == 0;
}

std::string Answers::error() const {
  for (const Answer& answer : answers_) {
    if (!answer.error.empty()) return answer.error;
  }
  return {};
}

std::string Answers::refusal() const {
  for (const Answer& answer : answers_) {
    if (answer.finish == engine::Finish::refused) return answer.error;
  }
  return {};
}

Json Answers::answer_json(const Answer& answer, std::size_t index) const {
  Json json = {{"index", index}};
  if (answer.parsed) {
    Json message = {{"content", answer.parsed->content}};
    if (answer.parsed->reasoning) message["reasoning_content"] = *answer.parsed->reasoning;
    Json calls = Json::array();
    for (const text::ParsedCall& call : answer.parsed->calls) {
      calls.push_back({{"name", call.name}, {"arguments", call.arguments}, {"complete", call.complete}});
    }
    if (!calls.empty()) message["tool_calls"] = std::move(calls);
    json["message"] = std::move(message);
  } else {
    json["text"] = answer.text;
  }
  json["tokens"] = answer.tokens;
  if (wants_logprobs_) json["logprobs"] = answer.logprobs;
  json["finish_reason"] = answer.parsed && answer.finish == engine::Finish::stop
                              ? std::string(text::to_string(answer.parsed->finish_reason))
                              : std::string(engine::to_text(answer.finish.value_or(engine::Finish::aborted)));
  if (!answer.stop_string.empty()) json["stop"] = answer.stop_string;
  if (!answer.error.empty()) json["error"] = answer.error;
  return json;
}

Json Answers::json() const {
  Json choices = Json::array();
  for (std::size_t i = 0; i < answers_.size(); ++i) choices.push_back(answer_json(answers_[i], i));
  return {{"choices", std::move(choices)},
          {"usage",
           {{"prompt_tokens", usage_.prompt_tokens},
            {"reused_tokens", usage_.reused_tokens},
            {"replayed_tokens", usage_.replayed_tokens},
            {"output_tokens", usage_.output_tokens}}}};
}

}  // namespace thalweg::app
