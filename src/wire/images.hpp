// Images in requests: described and checked, not fetched or decoded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "text/conversation.hpp"
#include "wire/fields.hpp"

namespace thalweg::wire {

/// Checks the images of one request: 600 in all, 32 MiB each and 64 MiB together for those that come inline.
class ImageReader {
 public:
  /// An http, https or data URL (base64; jpeg, jpg, png, gif or webp). Throws RejectedRequest: `message`
  /// names the message in its text, `path` is the field, `kind` what a data URL stands for.
  text::Image read(std::string url, text::ImageDetail detail, const std::string& message,
                   const std::string& path, std::string_view kind = "image");

 private:
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

/// True for http and https URLs.
bool is_web_url(std::string_view url);

/// True for "data:[TYPE][;PARAMETER...];base64,DATA".
bool is_data_url(std::string_view url);

/// Reads `detail`: low, high (the default), original, auto.
text::ImageDetail read_detail(Fields& image);

}  // namespace thalweg::wire
