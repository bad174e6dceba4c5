#include "app/batch.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>

#include "app/progress.hpp"
#include "base/error.hpp"

namespace thalweg::app {
namespace {

// How many results the file already holds; cuts a torn last line off.
std::size_t finished_lines(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return 0;
  std::size_t count = 0;
  std::uintmax_t whole = 0;
  std::string line;
  while (std::getline(in, line)) {
    if (in.eof()) break;  // no newline: torn
    const std::string subject = fmt::format("{}: line {}", file, count + 1);
    const Json result = parse_json(line, subject);
    if (!result.is_object() || !result.contains("index") || result["index"] != count) {
      throw InputError(subject, fmt::format("the result with index {}", count),
                       to_text(result).substr(0, 60));
    }
    ++count;
    whole += line.size() + 1;
  }
  in.close();
  std::filesystem::resize_file(file, whole);
  return count;
}

// Writes result lines in order, whatever order they come in.
class ResultWriter {
 public:
  ResultWriter(const std::string& file, std::size_t next)
      : next_(next), name_(file.empty() ? "standard output" : file) {
    file_ = file.empty() ? stdout : std::fopen(file.c_str(), "ab");
    if (file_ == nullptr) throw WorkError(fmt::format("{}: cannot write: {}", file, std::strerror(errno)));
  }
  ~ResultWriter() {
    if (file_ != stdout) std::fclose(file_);
  }
  ResultWriter(const ResultWriter&) = delete;
  ResultWriter& operator=(const ResultWriter&) = delete;

  /// Any thread. A failure to write is kept for `check`.
  void put(std::size_t index, std::string line) {
    const std::lock_guard lock(mutex_);
    waiting_[index] = std::move(line);
    while (!waiting_.empty() && waiting_.begin()->first == next_) {
      const std::string& text = waiting_.begin()->second;
      if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() || std::fflush(file_) != 0)
        failed_ = errno;
      waiting_.erase(waiting_.begin());
      ++next_;
    }
    ++results_;
    arrived_.notify_all();
  }
  /// Returns when fewer than `most` of `given` requests are unanswered. Throws WorkError if writing failed.
  void wait(std::size_t given, std::size_t most) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return given - results_ < most || failed_ != 0; });
    if (failed_ != 0) throw WorkError(fmt::format("{}: write failed: {}", name_, std::strerror(failed_)));
  }
  std::size_t results() {
    const std::lock_guard lock(mutex_);
    return results_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::size_t, std::string> waiting_;
  std::size_t next_;
  std::size_t results_ = 0;
  int failed_ = 0;
  std::string name_;
  std::FILE* file_;
};

engine::Request request_of(Json line, const std::string& subject, const SamplingOptions& defaults,
                           const engine::LoadedModel& model) {
  if (!line.is_object()) throw InputError(subject, "an object", line.type_name());
  line.erase("id");
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

Json head_of(const Json& line, std::size_t index) {
  Json head = {{"index", index}};
  if (line.is_object() && line.contains("id")) head["id"] = line["id"];
  return head;
}

void submit_line(const std::string& text, std::size_t index, const std::string& subject,
                 const SamplingOptions& defaults, const engine::LoadedModel& model, engine::Engine& engine,
                 const std::shared_ptr<ResultWriter>& writer) {
  Json head = {{"index", index}};
  try {
    const Json line = parse_json(text, subject);
    head = head_of(line, index);
    engine::Request request = request_of(line, subject, defaults, model);
    auto answers = std::make_shared<Answers>(request);
    engine.submit(std::move(request), [answers, head, index, writer](const engine::Event& event) {
      if (!answers->add(event)) return;
      Json result = head;
      result.update(answers->json());
      writer->put(index, to_text(result) + "\n");
    });
  } catch (const InputError& error) {
    head["error"] = error.what();
    writer->put(index, to_text(head) + "\n");
  }
}

}  // namespace

void run_batch(const BatchFiles& files, const SamplingOptions& defaults, const engine::LoadedModel& model,
               engine::Engine& engine) {
  std::ifstream in(files.in);
  if (!in) throw InputError(files.in, fmt::format("cannot be read: {}", std::strerror(errno)));
  std::size_t total = 0;
  std::string line;
  while (std::getline(in, line)) ++total;
  in.clear();
  in.seekg(0);
  const std::size_t done = files.out.empty() ? 0 : finished_lines(files.out);
  if (done > total) {
    throw InputError(files.out, fmt::format("at most {} results ({} has as many lines)", total, files.in),
                     std::to_string(done));
  }
  if (done > 0) std::fprintf(stderr, "thalweg: %zu of %zu lines are done already\n", done, total);
  // Shared with the sinks: they may outlive this call when writing fails.
  const auto writer = std::make_shared<ResultWriter>(files.out, done);
  Progress progress("generating", "requests", total - done);
  std::size_t shown = 0;
  // Enough requests for the scheduler to choose from, few enough to keep results in order cheaply.
  constexpr std::size_t kAhead = 256;
  for (std::size_t index = 0; std::getline(in, line); ++index) {
    if (index < done) continue;
    writer->wait(index - done, kAhead);
    submit_line(line, index, fmt::format("{}: line {}", files.in, index + 1), defaults, model, engine,
                writer);
    const std::size_t results = writer->results();
    progress.advance(results - shown);
    shown = results;
  }
  while (shown < total - done) {
    writer->wait(total - done, total - done - shown);
    const std::size_t results = writer->results();
    progress.advance(results - shown);
    shown = results;
  }
  progress.finish();
}

}  // namespace thalweg::app
