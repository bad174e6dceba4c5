// The bytes of replies: heads and chunks.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http_types.hpp"

namespace thalweg::serve {

/// How the end of a body is told.
enum class Framing {
  length,   ///< Content-Length
  chunked,  ///< HTTP/1.1 only
  closing,  ///< by closing the connection: HTTP/1.0
};

/// Status line and header fields of a reply. `length` is for Framing::length.
std::string reply_head(int status, std::string_view content_type, const HttpHeaders& headers, Framing framing,
                       std::size_t length, bool keep_alive);

/// Head and body of a reply that is known whole; no body if `head_only` (HEAD) or the status has none.
std::string whole_reply(const HttpReply& reply, bool keep_alive, bool head_only);

/// One chunk; nothing for no data. `framing` other than chunked leaves data as it is.
std::string chunk_of(std::string data, Framing framing);
/// What ends a body.
std::string_view last_chunk(Framing framing);

/// Header fields of event streams.
HttpHeaders event_stream_headers();
inline constexpr std::string_view kEventStream = "text/event-stream; charset=utf-8";

}  // namespace thalweg::serve
