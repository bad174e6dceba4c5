#include "engine/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "model/cache_layout.hpp"

namespace thalweg::engine {
namespace {

constexpr std::int64_t kDefaultCacheTokens = 64 * 1024;
constexpr std::int64_t kMostSequences = 1 << 16;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 36;

void expect(std::string_view option, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (least <= value && value <= most) return;
  throw UsageError(fmt::format("{}: expected {} to {}, found {}", option, least, most, value));
}

}  // namespace

EngineSizes sizes_of(const EngineOptions& options, const checkpoint::ModelConfig& config) {
  expect("--sequences", options.sequences, 1, kMostSequences);
  expect("--batch-tokens", options.batch_tokens, 1, 1 << 20);
  expect("--snapshots", options.snapshots, -1, kMostSequences);
  expect("--cache-tokens", options.cache_tokens, 0, kMostTokens);
  if (options.batch_tokens < options.sequences) {
    throw UsageError(fmt::format("--batch-tokens: expected at least --sequences ({}), found {}",
                                 options.sequences, options.batch_tokens));
  }
  if (options.snapshot_every < model::kPageTokens || options.snapshot_every % model::kPageTokens != 0) {
    throw UsageError(fmt::format("--snapshot-every: expected a multiple of {}, found {}", model::kPageTokens,
                                 options.snapshot_every));
  }
  EngineSizes sizes;
  const std::int64_t tokens = options.cache_tokens > 0 ? options.cache_tokens : kDefaultCacheTokens;
  sizes.blocks = (tokens + model::kPageTokens - 1) / model::kPageTokens;
  const std::int32_t snapshots = options.snapshots >= 0 ? options.snapshots : 2 * options.sequences;
  sizes.slots = std::int64_t{options.sequences} + snapshots;
  const std::int64_t most =
      std::min<std::int64_t>(config.max_position_embeddings, sizes.blocks * model::kPageTokens);
  if (options.context < 0 || options.context > most) {
    throw UsageError(
        fmt::format("--context: expected 0 to {} (max_position_embeddings and --cache-tokens), found {}",
                    most, options.context));
  }
  sizes.context = options.context > 0 ? options.context : most;
  const int backtracking = model::default_backtracking(config);
  const std::int64_t least_keep = config.sliding_window + backtracking;
  sizes.replay_keep = options.replay_keep != 0 ? options.replay_keep : least_keep + backtracking;
  if (sizes.replay_keep < least_keep) {
    throw UsageError(fmt::format("--replay-keep: expected at least {} (window + backtracking), found {}",
                                 least_keep, options.replay_keep));
  }
  return sizes;
}

}  // namespace thalweg::engine
