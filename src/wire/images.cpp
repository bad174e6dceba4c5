#include "wire/images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace thalweg::wire {
namespace {

constexpr std::size_t kMostImages = 600;
constexpr std::size_t kMostBytes = std::size_t{32} << 20;
constexpr std::size_t kMostBytesTogether = std::size_t{64} << 20;
constexpr std::array<std::string_view, 5> kMediaTypes{"jpeg", "jpg", "png", "gif", "webp"};

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

bool is_base64(std::string_view text) {
  const std::size_t length = text.find_last_not_of('=') + 1;
  const std::size_t padding = text.size() - length;
  if (length == 0 || length % 4 == 1 || padding > 2 || (padding > 0 && text.size() % 4 != 0)) return false;
  return std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
  });
}

// What follows "data:image/TYPE;base64,"; empty if the URL is anything else.
std::string_view inline_data(std::string_view url) {
  if (!starts_with(url, "data:image/")) return {};
  url.remove_prefix(std::string_view("data:image/").size());
  for (const auto type : kMediaTypes) {
    const std::string start = fmt::format("{};base64,", type);
    if (starts_with(url, start)) return url.substr(start.size());
  }
  return {};
}

}  // namespace

text::Image ImageReader::read(std::string url, text::ImageDetail detail, const std::string& message,
                              const std::string& path) {
  const auto refuse = [&](std::string_view why) { rejected(fmt::format(".{}: {}", message, why), path); };
  if (++count_ > kMostImages) refuse(fmt::format("Too many images, at most {} are supported", kMostImages));
  using Kind = text::Image::Kind;
  if (starts_with(url, "http://") || starts_with(url, "https://")) return {Kind::url, detail, std::move(url)};
  const std::string_view data = inline_data(url);
  if (data.empty()) refuse("Unsupported image_url format");
  if (!is_base64(data)) refuse("Image data is not valid base64");
  const std::size_t bytes = data.size() / 4 * 3;
  bytes_ += bytes;
  if (bytes > kMostBytes || bytes_ > kMostBytesTogether) {
    refuse("Image data is too large, at most 32 MiB for an image and 64 MiB for all images are supported");
  }
  return {Kind::data_url, detail, std::move(url)};
}

text::ImageDetail read_detail(Fields& image) {
  const std::string detail = image.string("detail").value_or("high");
  if (detail == "low") return text::ImageDetail::low;
  if (detail == "high") return text::ImageDetail::high;
  if (detail == "original") return text::ImageDetail::original;
  if (detail == "auto") return text::ImageDetail::automatic;
  malformed(image.path("detail"), "low, high, original or auto", detail);
}

}  // namespace thalweg::wire
