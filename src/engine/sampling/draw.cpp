#include "engine/sampling/draw.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/sampling/gumbel.hpp"

namespace thalweg::engine {
namespace {

/// The best score so far, and the logit below which no noise helps.
class Contest {
 public:
  Contest(double temperature, FilterCut cut) : temperature_(temperature), cut_(cut) {}

  void enter(float logit, std::int32_t token, std::uint32_t word) {
    const double scaled = logit / temperature_;
    if (scaled + gumbel_bound(word) < best_) return;
    const double score = scaled + gumbel_of_word(word);
    if (score < best_ || (score == best_ && token > winner_)) return;
    best_ = score;
    winner_ = token;
    raise_floor();
  }

  float floor() const { return floor_; }
  FilterCut cut() const { return cut_; }
  std::int32_t winner() const { return winner_; }

 private:
  void raise_floor() {
    // A little lower than exact, so that rounding can only let a hopeless token through.
    const double exact = (best_ - max_gumbel) * temperature_;
    const auto below = static_cast<float>(exact - std::abs(exact) * 1e-6);
    floor_ = std::max(cut_.logit, below);
  }

  double temperature_;
  FilterCut cut_;
  double best_ = -std::numeric_limits<double>::infinity();
  float floor_ = -std::numeric_limits<float>::infinity();
  std::int32_t winner_ = std::numeric_limits<std::int32_t>::max();
};

}  // namespace

std::int32_t draw_token(std::span<const float> logits, LargestLogit largest, double temperature,
                        FilterCut cut, std::uint64_t seed, std::int64_t position) {
  Contest contest(temperature, cut);
  const auto favourite = static_cast<std::uint32_t>(largest.token);
  contest.enter(largest.logit, largest.token, noise_words(seed, position, favourite / 4)[favourite % 4]);
  constexpr std::size_t group_size = 4;  // tokens that share a block of random words
  for (std::size_t first = 0; first < logits.size(); first += group_size) {
    const auto group = logits.subspan(first, std::min(group_size, logits.size() - first));
    if (*std::max_element(group.begin(), group.end()) < contest.floor()) continue;
    const PhiloxCounter words = noise_words(seed, position, static_cast<std::uint32_t>(first / group_size));
    for (std::size_t j = 0; j < group.size(); ++j) {
      const auto token = static_cast<std::int32_t>(first + j);
      if (group[j] < contest.floor() || !cut.keeps(group[j], token)) continue;
      contest.enter(group[j], token, words[j]);
    }
  }
  return contest.winner();
}

}  // namespace thalweg::engine
