#include "wire/images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace thalweg::wire {
namespace {

constexpr std::size_t kMostImages = 600;
constexpr std::size_t kMostBytes = std::size_t{32} << 20;
constexpr std::size_t kMostBytesTogether = std::size_t{64} << 20;
constexpr std::array<std::string_view, 5> kMediaTypes{"jpeg", "jpg", "png", "gif", "webp"};

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_word(std::string_view text, std::string_view word) {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [](char a, char b) { return lower(a) == b; });
}

// True if `text` starts with `word`, a lower-case word, in any case.
bool starts_with(std::string_view text, std::string_view word) {
  return same_word(text.substr(0, word.size()), word);
}

bool is_base64(std::string_view text) {
  const std::size_t length = text.find_last_not_of('=') + 1;
  const std::size_t padding = text.size() - length;
  if (length % 4 == 1 || padding > 2 || (padding > 0 && text.size() % 4 != 0)) return false;
  return std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
  });
}

bool is_supported(std::string_view media_type) {
  if (!starts_with(media_type, "image/")) return false;
  media_type.remove_prefix(std::string_view("image/").size());
  return std::any_of(kMediaTypes.begin(), kMediaTypes.end(),
                     [&](std::string_view known) { return same_word(media_type, known); });
}

struct DataUrl {
  std::string_view media_type;
  std::string_view data;
};

// The parts of "data:TYPE[;PARAMETER...];base64,DATA"; none if the URL is anything else.
std::optional<DataUrl> split_data_url(std::string_view url) {
  if (!starts_with(url, "data:")) return std::nullopt;
  url.remove_prefix(std::string_view("data:").size());
  const auto comma = url.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const std::string_view head = url.substr(0, comma);
  const auto last = head.rfind(';');
  if (last == std::string_view::npos || !same_word(head.substr(last + 1), "base64")) return std::nullopt;
  return DataUrl{head.substr(0, head.find(';')), url.substr(comma + 1)};
}

}  // namespace

text::Image ImageReader::read(std::string url, text::ImageDetail detail, const std::string& message,
                              const std::string& path, std::string_view kind) {
  const auto refuse = [&](const std::string& why) { rejected(fmt::format("{}: {}", message, why), path); };
  if (++count_ > kMostImages) refuse(fmt::format("Too many images, at most {} are supported", kMostImages));
  using Kind = text::Image::Kind;
  if (is_web_url(url)) return {Kind::url, detail, std::move(url)};
  const auto parts = split_data_url(url);
  if (!parts) refuse("Unsupported image_url format");
  if (!is_supported(parts->media_type)) {
    refuse(fmt::format(
        "You have uploaded an unsupported {0}. Please make sure your {0} is valid and has one of the "
        "following formats: webp, png, jpeg, and gif.",
        kind));
  }
  if (!is_base64(parts->data)) refuse("Invalid base64 data");
  const std::size_t bytes = parts->data.size() / 4 * 3;
  bytes_ += bytes;
  if (bytes > kMostBytes || bytes_ > kMostBytesTogether) {
    refuse("Image data is too large, at most 32 MiB for an image and 64 MiB for all images are supported");
  }
  return {Kind::data_url, detail, std::move(url)};
}

bool is_web_url(std::string_view url) {
  return starts_with(url, "http://") || starts_with(url, "https://");
}

bool is_data_url(std::string_view url) {
  return split_data_url(url).has_value();
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
