#include "app/batch.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "app/batch_results.hpp"
#include "app/progress.hpp"
#include "base/error.hpp"

namespace thalweg::app {
namespace {

engine::Request request_of(Json line, const std::string& subject, const SamplingOptions& defaults,
                           const engine::LoadedModel& model) {
  if (!line.is_object()) throw InputError(subject, "an object", line.type_name());
  line.erase("id");
  if (line.contains("prompt") && line.contains("messages")) {
    throw InputError(subject, "either \"prompt\" or \"messages\"", "both");
  }
  if (line.contains("messages")) {
    SamplingOptions sampling = defaults;
    for (const char* name : {"top_k", "min_p", "repetition_penalty", "min_tokens", "ignore_eos"}) {
      if (!line.contains(name)) continue;
      Json own = {{name, line[name]}};
      sampling = take_sampling(own, sampling, subject);
      line.erase(name);
    }
    return chat_request(model, line, subject, sampling);
  }
  const SamplingOptions sampling = take_sampling(line, defaults, subject);
  if (!line.contains("prompt")) throw InputError(subject, "a member \"prompt\" or \"messages\"", "neither");
  const Json prompt = line["prompt"];
  line.erase("prompt");
  if (!line.empty()) throw InputError(subject + ": " + line.begin().key(), "unknown member");
  if (prompt.is_string()) return raw_request(model, prompt.get<std::string>(), sampling);
  if (!prompt.is_array())
    throw InputError(subject + ": prompt", "a string or a list of token ids", prompt.type_name());
  engine::Request request = raw_request(model, "", sampling);
  request.prompt.clear();
  for (const Json& id : prompt) {
    if (!id.is_number_integer() || id < 0 || id > std::numeric_limits<std::int32_t>::max()) {
      throw InputError(subject + ": prompt", "token ids", to_text(id).substr(0, 40));
    }
    request.prompt.push_back(id.get<std::int32_t>());
  }
  return request;
}

// Every result starts with these members.
Json head_of(std::size_t index, const std::string& text) {
  return {{"index", index}, {"input", line_digest(text)}};
}

// The engine's own checks, with the line's name in front.
void check_request(const engine::Request& request, const engine::LoadedModel& model,
                   const std::string& subject) {
  try {
    engine::validate(request.sampling, model.model.config().vocab_size);
  } catch (const InputError& error) {
    throw InputError(subject, error.what());
  }
}

void submit_line(const std::string& text, std::size_t index, const std::string& subject,
                 const SamplingOptions& defaults, const engine::LoadedModel& model, engine::Engine& engine,
                 const std::shared_ptr<BatchResults>& results) {
  Json head = head_of(index, text);
  try {
    const Json line = parse_json(text, subject, {.unique_keys = true});
    if (line.is_object() && line.contains("id")) head["id"] = line["id"];
    engine::Request request = request_of(line, subject, defaults, model);
    check_request(request, model, subject);
    auto answers = std::make_shared<Answers>(request);
    engine.submit(std::move(request), [answers, head, index, results](const engine::Event& event) {
      // What is cut off because the program stops is no result: it is computed again when the batch is
      // resumed.
      if (!answers->add(event) || event.finish == engine::Finish::aborted) return;
      Json result = head;
      result.update(answers->json());
      results->put(index, to_text(result) + "\n");
    });
  } catch (const InputError& error) {
    head["error"] = error.what();
    results->put(index, to_text(head) + "\n");
  }
}

}  // namespace

void run_batch(const BatchFiles& files, const SamplingOptions& defaults, const engine::LoadedModel& model,
               engine::Engine& engine) {
  if (std::filesystem::is_directory(files.in))
    throw InputError(files.in, "a file of JSON lines", "a directory");
  std::ifstream in(files.in);
  if (!in) throw InputError(files.in, fmt::format("cannot be read: {}", std::strerror(errno)));
  const auto rewind = [&in] {
    in.clear();
    in.seekg(0);
  };
  std::size_t total = 0;
  std::string line;
  while (std::getline(in, line)) ++total;
  rewind();
  // Shared with the sinks: they may outlive this call when writing fails.
  const auto results = std::make_shared<BatchResults>(files.out, in);
  rewind();
  const std::size_t done = results->resumed();
  if (done > 0) std::fprintf(stderr, "thalweg: %zu of %zu lines are done already\n", done, total);
  Progress progress("generating", "requests", total - done);
  std::size_t shown = 0;
  const auto show = [&] {
    const std::size_t now = results->results();
    progress.advance(now - shown);
    shown = now;
  };
  // Enough requests for the scheduler to choose from, few enough to keep results in order cheaply.
  constexpr std::size_t kAhead = 256;
  for (std::size_t index = 0; std::getline(in, line); ++index) {
    if (index < done) continue;
    results->wait(index - done, kAhead);
    submit_line(line, index, fmt::format("{}: line {}", files.in, index + 1), defaults, model, engine,
                results);
    show();
  }
  while (shown < total - done) {
    results->wait(total - done, total - done - shown);
    show();
  }
  progress.finish();
}

}  // namespace thalweg::app
