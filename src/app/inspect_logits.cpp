// `thalweg inspect logits`: the model's logits on token prompts, into a safetensors file.
#include <algorithm>
#include <cstring>
#include <optional>

#include "app/capture.hpp"
#include "app/commands.hpp"
#include "app/engine_options.hpp"
#include "app/progress.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "engine/timeline.hpp"

namespace thalweg::app {
namespace {

struct Options {
  EngineOptions engine;
  std::string tokens;
  std::string out;
  std::string positions = "all";
  std::string mode = "exact";
  std::size_t chunk = 0;
  std::int64_t replay_keep = 0;
  bool capture = false;
  bool json = false;
};

// Tensors whose bytes this object owns.
class Output {
 public:
  void add(std::string name, checkpoint::DType dtype, std::vector<std::int64_t> shape,
           std::vector<std::byte> bytes) {
    bytes_.push_back(std::make_unique<std::vector<std::byte>>(std::move(bytes)));
    tensors_.push_back({std::move(name), dtype, std::move(shape), *bytes_.back()});
  }
  std::vector<checkpoint::StoredTensor>& tensors() { return tensors_; }

 private:
  std::vector<std::unique_ptr<std::vector<std::byte>>> bytes_;
  std::vector<checkpoint::StoredTensor> tensors_;
};

template <class T>
void append(std::vector<std::byte>& bytes, std::span<const T> values) {
  const auto raw = std::as_bytes(values);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

void run_prompt(const Options& options, engine::Timeline& timeline, const std::vector<std::int32_t>& prompt,
                std::int64_t keep, std::size_t index, std::int64_t vocab, Output& output) {
  std::vector<std::byte> logits;
  std::vector<std::int32_t> positions;
  const auto take = [&](std::int64_t position, std::span<const float> row) {
    positions.push_back(static_cast<std::int32_t>(position));
    append(logits, row);
  };
  const std::size_t chunk = options.chunk > 0 ? options.chunk : prompt.size();
  const bool all = options.positions == "all";
  timeline.clear();
  if (options.mode == "replay") {
    timeline.append_replayed(prompt, keep, chunk, all, take);
  } else {
    timeline.append(prompt, chunk, all, take);
  }
  const auto rows = static_cast<std::int64_t>(positions.size());
  std::vector<std::byte> position_bytes;
  append(position_bytes, std::span<const std::int32_t>(positions));
  output.add("logits." + std::to_string(index), checkpoint::DType::f32, {rows, vocab}, std::move(logits));
  output.add("positions." + std::to_string(index), checkpoint::DType::i32, {rows}, std::move(position_bytes));
}

void run(const Options& options) {
  const auto model = load(options.engine);
  const auto& config = model->model.config();
  const auto prompts = read_prompts(options.tokens, config);
  if (options.capture && prompts.size() != 1) {
    throw InputError(options.tokens, "one prompt with --capture", std::to_string(prompts.size()));
  }
  std::int64_t longest = 1;
  for (const auto& prompt : prompts)
    longest = std::max<std::int64_t>(longest, static_cast<std::int64_t>(prompt.size()));
  const auto backend = make_single_backend(options.engine, *model, longest);
  const std::int64_t keep = replay_keep_of(config, options.replay_keep);
  Capture capture(config.layers);
  if (options.capture) backend->observe(&capture);
  engine::Timeline timeline(*backend);
  Output output;
  Progress progress("computing", "prompts", prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    run_prompt(options, timeline, prompts[i], keep, i, config.vocab_size, output);
    progress.advance();
  }
  progress.finish();
  for (checkpoint::StoredTensor& tensor : capture.tensors()) {
    if (tensor.name != "logits") output.tensors().push_back(std::move(tensor));
  }
  checkpoint::write_safetensors(options.out, output.tensors(),
                                {{"mode", options.mode}, {"precision", options.engine.precision}});
  if (options.json) {
    const Json done = {{"out", options.out}, {"prompts", prompts.size()}, {"backend", backend->describe()}};
    std::printf("%s\n", to_text(done).c_str());
  }
}

}  // namespace

void add_inspect_logits(CLI::App& inspect) {
  auto options = std::make_shared<Options>();
  CLI::App* command = inspect.add_subcommand("logits", "Logits of token prompts, as a safetensors file");
  add_engine_options(*command, options->engine);
  command->add_option("--tokens", options->tokens, "File {\"prompts\": [[ids...], ...]}")->required();
  command->add_option("--out", options->out, "safetensors file to write: logits.<i> [positions, vocab]")
      ->required();
  command->add_option("--positions", options->positions, "all or last")
      ->check(CLI::IsMember({"all", "last"}))
      ->capture_default_str();
  command->add_option("--mode", options->mode, "exact, or replay: decoder layers on the prompt's tail only")
      ->check(CLI::IsMember({"exact", "replay"}))
      ->capture_default_str();
  command
      ->add_option("--replay-keep", options->replay_keep,
                   "Tokens that replay keeps (default: window + 2 x backtracking)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  command
      ->add_option("--chunk", options->chunk, "Feed prompts in chunks of this many tokens (default: whole)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 31));
  command->add_flag("--capture", options->capture, "Add the intermediates of every layer (one prompt only)");
  command->add_flag("--json", options->json, "Print what was done as JSON");
  command->callback([options] { run(*options); });
}

}  // namespace thalweg::app
