#include "text/image_tokens.hpp"

#include <algorithm>
#include <cmath>

namespace thalweg::text {
namespace {

constexpr double kPatch = 14;
constexpr double kCell = 3 * kPatch;
constexpr double kLeastPixels = 295936;
constexpr int kMostTokens = 1024;
constexpr int kMostRows = (kMostTokens - 2) / 2;  // of one column: every row has its new-line
constexpr int kMostRounds = 16;                   // extreme shapes settle after 9

struct Size {
  double width, height;  // whole numbers
  bool operator==(const Size&) const = default;
};

double round_up(double side) {
  return std::ceil(side / kPatch) * kPatch;
}

double tokens_of(Size size) {
  return std::ceil(size.height / kCell) * (std::ceil(size.width / kCell) + 1) + 2;
}

// The largest size of this shape that fits, in whole patches.
Size shrink(Size size) {
  const double aspect = size.height / size.width;
  // columns * (columns * aspect) + columns * aspect = the cells and new-lines there is room for.
  const double columns = std::sqrt((kMostTokens - 2) / aspect + 0.25) - 0.5;
  const double rows = columns * aspect;
  if (columns < 1) return {kCell, kMostRows * kCell};
  if (rows < 1) return {(kMostTokens - 3) * kCell, kCell};
  const double scale =
      std::min(std::floor(columns) * kCell / size.width, std::floor(rows) * kCell / size.height);
  const auto scaled = [&](double side) { return std::floor(side * scale / kPatch) * kPatch; };
  return {scaled(size.width), scaled(size.height)};
}

Size resize(Size size) {
  const double pixels = size.width * size.height;
  if (pixels < kLeastPixels) {
    const double scale = std::sqrt(kLeastPixels / pixels);
    size = {std::trunc(size.width * scale), std::trunc(size.height * scale)};
  }
  const Size rounded{round_up(size.width), round_up(size.height)};
  return tokens_of(rounded) > kMostTokens ? shrink(size) : rounded;
}

}  // namespace

int image_tokens(int width, int height) {
  Size size{static_cast<double>(width), static_cast<double>(height)};
  for (int round = 0; round < kMostRounds; ++round) {
    const Size next = resize(size);
    if (next == size) break;
    size = next;
  }
  return static_cast<int>(tokens_of(size));
}

}  // namespace thalweg::text
