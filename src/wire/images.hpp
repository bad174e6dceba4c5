// Images in requests: described and checked, not fetched or decoded.
#pragma once

#include <cstddef>
#include <string>

#include "text/conversation.hpp"
#include "wire/fields.hpp"

namespace thalweg::wire {

/// Checks the images of one request: 600 in all, 32 MiB each and 64 MiB together for those that come inline.
class ImageReader {
 public:
  /// An http, https or data URL (base64; jpeg, jpg, png, gif or webp). Throws RejectedRequest; `message`
  /// names the message, as `messages[0]`, and `path` the field.
  text::Image read(std::string url, text::ImageDetail detail, const std::string& message,
                   const std::string& path);

 private:
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

/// Reads `detail`: low, high (the default), original, auto.
text::ImageDetail read_detail(Fields& image);

}  // namespace thalweg::wire
