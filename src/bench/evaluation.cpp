#include "bench/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "engine/timeline.hpp"

namespace thalweg::bench {
namespace {

using Row = std::vector<float>;
using Ids = std::span<const std::int32_t>;

double log_sum(std::span<const float> logits) {
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - most);
  return most + std::log(sum);
}

void add(TextLoss& loss, std::span<const float> logits, std::int32_t token, std::size_t bytes) {
  loss.loss += log_sum(logits) - logits[static_cast<std::size_t>(token)];
  loss.bytes += static_cast<std::int64_t>(bytes);
  ++loss.tokens;
}

void compare(Difference& difference, const Row& exact, const Row& other) {
  const double exact_sum = log_sum(exact);
  const double other_sum = log_sum(other);
  double kl = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double p = exact[i] - exact_sum;
    kl += std::exp(p) * (p - (other[i] - other_sum));
    difference.logit_max = std::max(difference.logit_max, std::abs(double{exact[i]} - double{other[i]}));
  }
  difference.kl_sum += kl;
  difference.kl_max = std::max(difference.kl_max, kl);
  const auto best = [](const Row& row) { return std::ranges::max_element(row) - row.begin(); };
  difference.same_best += best(exact) == best(other) ? 1 : 0;
}

/// A prompt, timed, then the tokens after it: the logits that follow each position from the prompt's last on.
std::vector<Row> run(const Computation& computation, Ids prompt, Ids continuation, double* seconds) {
  std::vector<Row> rows;
  const auto take = [&](std::int64_t, std::span<const float> logits) {
    rows.emplace_back(logits.begin(), logits.end());
  };
  engine::Timeline timeline(*computation.backend);
  constexpr std::size_t kChunk = 512;
  const auto begin = std::chrono::steady_clock::now();
  if (computation.replay_keep) {
    timeline.append_replayed(prompt, *computation.replay_keep, kChunk, false, take);
  } else {
    timeline.append(prompt, kChunk, false, take);
  }
  if (seconds != nullptr)
    *seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!continuation.empty()) timeline.append(continuation, kChunk, true, take);
  return rows;
}

void evaluate_window(const text::Tokenizer& tokenizer, Ids window, const Computation& exact,
                     const std::optional<Computation>& other, std::int64_t continuation, TextResult& result) {
  const auto bytes = [&](std::int32_t id) { return tokenizer.token_bytes(id).size(); };
  const std::size_t cut = window.size() - static_cast<std::size_t>(continuation);
  std::vector<Row> tail;  // exact logits that follow the positions from cut - 1 on
  engine::Timeline timeline(*exact.backend);
  timeline.append(window, 256, true, [&](std::int64_t position, std::span<const float> logits) {
    const auto next = static_cast<std::size_t>(position) + 1;
    if (next < window.size()) add(result.whole, logits, window[next], bytes(window[next]));
    if (next >= cut) tail.emplace_back(logits.begin(), logits.end());
  });
  ++result.windows;
  if (!other) return;
  if (!result.difference) result.difference.emplace();
  Difference& difference = *result.difference;
  const Ids prompt = window.first(cut);
  run(exact, prompt, {}, &difference.exact_seconds);
  const std::vector<Row> changed = run(*other, prompt, window.subspan(cut), &difference.other_seconds);
  for (std::size_t i = 0; i < static_cast<std::size_t>(continuation); ++i) {
    const std::int32_t token = window[cut + i];
    add(difference.exact, tail[i], token, bytes(token));
    add(difference.other, changed[i], token, bytes(token));
    compare(difference, tail[i], changed[i]);
  }
}

}  // namespace

double TextLoss::perplexity() const {
  return std::exp(per_token());
}

double TextLoss::bits_per_byte() const {
  return bytes > 0 ? loss / std::log(2.0) / static_cast<double>(bytes) : 0;
}

std::int64_t windows_of(std::int64_t tokens, const TextOptions& options) {
  return std::min(tokens / (options.window - 1), options.limit);
}

TextResult evaluate_text(const text::Tokenizer& tokenizer, const std::string& text,
                         const std::string& subject, const Computation& exact,
                         const std::optional<Computation>& other, const TextOptions& options) {
  const std::int32_t bos = exact.backend->model().config().bos_token_id;
  const std::vector<std::int32_t> ids = tokenizer.encode_plain(text);
  const std::int64_t windows = windows_of(static_cast<std::int64_t>(ids.size()), options);
  if (windows == 0) {
    throw InputError(subject, fmt::format("at least {} tokens (one window)", options.window - 1),
                     std::to_string(ids.size()));
  }
  TextResult result;
  std::vector<std::int32_t> window(static_cast<std::size_t>(options.window), bos);
  for (std::int64_t w = 0; w < windows; ++w) {
    std::copy_n(ids.begin() + w * (options.window - 1), options.window - 1, window.begin() + 1);
    evaluate_window(tokenizer, window, exact, other, options.continuation, result);
    if (options.on_window) options.on_window();
  }
  return result;
}

bool solves(const text::Tokenizer& tokenizer, const Task& task, const Computation& computation) {
  const std::int32_t eos = computation.backend->model().config().eos_token_id;
  const std::size_t most = tokenizer.encode_plain(task.answer).size() + 8;
  const auto best = [](const Row& row) {
    return static_cast<std::int32_t>(std::ranges::max_element(row) - row.begin());
  };
  Row row;
  const auto take = [&](std::int64_t, std::span<const float> logits) {
    row.assign(logits.begin(), logits.end());
  };
  engine::Timeline timeline(*computation.backend);
  if (computation.replay_keep) {
    timeline.append_replayed(task.prompt, *computation.replay_keep, 512, false, take);
  } else {
    timeline.append(task.prompt, 512, false, take);
  }
  std::vector<std::int32_t> answer;
  for (std::int32_t token = best(row); token != eos; token = best(row)) {
    answer.push_back(token);
    if (answer.size() > most) return false;
    timeline.append({&token, 1}, 1, false, take);
  }
  return tokenizer.decode(answer) == task.answer;
}

}  // namespace thalweg::bench
