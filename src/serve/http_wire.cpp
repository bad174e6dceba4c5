#include "serve/http_wire.hpp"

#include <fmt/format.h>

#include <ctime>
#include <iterator>

namespace thalweg::serve {
namespace {

constexpr int kNoContent = 204;

std::string_view reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case kNoContent:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

std::string date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[40];
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc);
  return text;
}

}  // namespace

std::string reply_head(int status, std::string_view content_type, const HttpHeaders& headers, Framing framing,
                       std::size_t length, bool keep_alive) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", status, reason(status), date());
  const auto to = std::back_inserter(head);
  if (status != kNoContent) {
    fmt::format_to(to, "Content-Type: {}\r\n", content_type);
    if (framing == Framing::length) fmt::format_to(to, "Content-Length: {}\r\n", length);
    if (framing == Framing::chunked) head += "Transfer-Encoding: chunked\r\n";
  }
  for (const auto& [name, value] : headers) fmt::format_to(to, "{}: {}\r\n", name, value);
  head += keep_alive && framing != Framing::closing ? "Connection: keep-alive\r\n\r\n"
                                                    : "Connection: close\r\n\r\n";
  return head;
}

std::string whole_reply(const HttpReply& reply, bool keep_alive, bool head_only) {
  std::string bytes = reply_head(reply.status, reply.content_type, reply.headers, Framing::length,
                                 reply.body.size(), keep_alive);
  if (!head_only && reply.status != kNoContent) bytes += reply.body;
  return bytes;
}

std::string chunk_of(std::string data, Framing framing) {
  if (data.empty() || framing != Framing::chunked) return data;
  return fmt::format("{:x}\r\n{}\r\n", data.size(), data);
}

std::string_view last_chunk(Framing framing) {
  return framing == Framing::chunked ? "0\r\n\r\n" : "";
}

HttpHeaders event_stream_headers() {
  return {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
}

}  // namespace thalweg::serve
