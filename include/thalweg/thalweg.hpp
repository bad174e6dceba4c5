// Thalweg as a library: open a model, submit requests, receive their answers as events.
//
//   thalweg::Engine engine({.model = "models/mini"});
//   engine.submit({.prompt = "The river", .max_tokens = 20}, [](const thalweg::Event& event) {
//     std::cout << event.text;
//   });
//   engine.drain();
//
// Thread rules: every member of Engine may be called from any thread. Sinks are called on the engine's own
// thread, one at a time, the events of a request in order. A sink must not block, throw, or call `drain`; it
// may submit and cancel.
//
// Errors: constructors and `submit` throw thalweg::Failure; nothing else throws. What goes wrong with an
// answer once it has been accepted comes as its last event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace thalweg {

/// What was wrong, in one line that names the option or field, what was expected and what was found.
class Failure : public std::runtime_error {
 public:
  enum class Kind {
    work,     ///< it could not be done although the request was right (out of memory, engine stopped)
    options,  ///< an option of the engine is wrong
    input,    ///< the model or a request is wrong
  };
  Failure(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  Kind kind() const noexcept { return kind_; }

 private:
  Kind kind_;
};

struct Options {
  std::string model;                ///< folder with config.json, tokenizer.json and weights
  std::size_t threads = 0;          ///< 0: all processors of this process
  bool replay = false;              ///< bounded replay: faster prompts, approximate
  std::string speculate = "off";    ///< off, fixed:K, dynamic or adaptive; changes speed, never the output
  std::int32_t sequences = 16;      ///< answers in progress at once
  std::int32_t batch_tokens = 512;  ///< rows of a step at most
  std::int64_t context = 0;         ///< tokens of prompt and answer at most; 0: what model and cache allow
  std::int64_t cache_tokens =
      0;  ///< tokens kept on the device, for running and for cached prompts; 0: 65,536
  std::size_t host_cache_bytes = std::size_t{256} << 20;  ///< host memory for cached prompts
  std::string disk_cache;  ///< folder that keeps them over restarts; empty: none
};

/// One prompt, as text or as token ids (then `prompt` is empty), and what is wanted of it.
struct Request {
  std::string
      prompt;  ///< continued as it is, with a begin-of-sequence token in front; control tokens are recognised
  std::vector<std::int32_t> tokens;
  std::optional<std::int64_t> max_tokens;  ///< absent: until the context is full
  double temperature = 1;                  ///< 0: the most likely token
  double top_p = 1;
  std::int32_t top_k = 0;  ///< 0: all
  std::optional<std::uint64_t>
      seed;  ///< a token depends on its position, this and the text before it; absent: random
  std::vector<std::string> stop;  ///< texts that end the answer; not part of it
  bool ignore_eos = false;
  // What the answer is held to: one of these at most, and not together with ignore_eos. What cannot be
  // compiled ends the answer as failed.
  std::string json_schema;           ///< JSON valid for this JSON Schema
  bool json_object = false;          ///< one JSON object
  std::string regex;                 ///< an expression that the whole answer matches
  std::string grammar;               ///< an EBNF grammar with the rule `root`
  std::vector<std::string> choices;  ///< one of these texts
  std::int32_t n = 1;                ///< independent answers
  int priority = 0;                  ///< higher goes first
  std::string cache_salt;            ///< requests of different salts never share cached prompts
};

enum class Finish {
  stop,     ///< end of sequence or a stop text
  length,   ///< max_tokens, or the context is full
  aborted,  ///< cancelled, or the engine was destroyed
  failed,   ///< `Event::error` says why
};

/// One step of one answer. Of every answer (`choice`) exactly one event, the last, has `finish`.
struct Event {
  std::uint64_t request = 0;
  std::int32_t choice = 0;
  std::optional<std::int32_t> token;  ///< the token just produced
  std::string text;  ///< whole characters only; text that may become a stop text is held back
  std::optional<Finish> finish;
  std::string error;
  std::int64_t prompt_tokens = 0;
  std::int64_t reused_tokens = 0;  ///< of the prompt, from the cache
  std::int64_t output_tokens = 0;  ///< with `finish`
};

using EventSink = std::function<void(const Event&)>;

/// Counted since the engine was made. admitted = waiting + running + finished + aborted.
struct Statistics {
  std::uint64_t admitted = 0;
  std::uint64_t waiting = 0;
  std::uint64_t running = 0;
  std::uint64_t finished = 0;
  std::uint64_t aborted = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t reused_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t steps = 0;
  double device_seconds = 0;
};

/// A loaded model and the loop that serves it.
class Engine {
 public:
  /// Loads the model (all weights are checked) and starts the engine's threads.
  explicit Engine(const Options& options);
  /// Ends unfinished answers as aborted; their sinks hear of it before this returns.
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  /// Takes a request. Its id is not used again.
  std::uint64_t submit(const Request& request, EventSink sink);
  /// Ends a request; ids that are unknown or finished are ignored.
  void cancel(std::uint64_t request);
  /// Returns when no request is unfinished.
  void drain();

  Statistics statistics() const;
  /// For people: device, precision, mode, sizes.
  std::string describe() const;
  std::int64_t context() const;

  std::vector<std::int32_t> tokenize(const std::string& text) const;
  std::string detokenize(const std::vector<std::int32_t>& tokens) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// "0.1.0"
const char* version();

}  // namespace thalweg
