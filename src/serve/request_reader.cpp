#include "serve/request_reader.hpp"

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/rfc7230.hpp>

#include <fmt/format.h>

namespace thalweg::serve {
namespace {

namespace http = boost::beast::http;

constexpr unsigned kHttp10 = 10;

std::string text(boost::beast::string_view view) {
  return std::string(view.data(), view.size());
}

bool equal(boost::beast::string_view a, std::string_view b) {
  return boost::beast::iequals(a, boost::beast::string_view(b.data(), b.size()));
}

}  // namespace

RequestReader::RequestReader(std::uint32_t header_limit, std::uint64_t body_limit) {
  parser_.header_limit(header_limit);
  parser_.body_limit(body_limit);
}

std::optional<HttpError> RequestReader::check_head() const {
  const auto& message = parser_.get();
  if (message.version() != 11 && message.version() != kHttp10) {
    return HttpError(505, "invalid_request_error", "Only HTTP/1.0 and HTTP/1.1 are spoken here.");
  }
  if (message.version() == 11 && message.count(http::field::host) != 1) {
    return bad_request("Host: expected exactly one such header field");
  }
  if (message.count(http::field::transfer_encoding) > 0 &&
      !equal(message[http::field::transfer_encoding], "chunked")) {
    return HttpError(501, "invalid_request_error", "Transfer-Encoding: only chunked is supported");
  }
  if (message.count(http::field::transfer_encoding) > 0 && message.count(http::field::content_length) > 0) {
    return bad_request("Content-Length and Transfer-Encoding exclude each other");
  }
  if (message.count(http::field::expect) > 0 && !expects_continue()) {
    return HttpError(417, "invalid_request_error", "Expect: only 100-continue is supported");
  }
  return std::nullopt;
}

HttpRequest RequestReader::head() const {
  const auto& message = parser_.get();
  HttpRequest request;
  request.method = text(message.method_string());
  request.target = text(message.target());
  request.authorization = text(message[http::field::authorization]);
  request.api_key = text(message["x-api-key"]);
  request.request_id = text(message["x-request-id"]);
  request.traceparent = text(message["traceparent"]);
  request.origin = text(message[http::field::origin]);
  request.encoding = text(message[http::field::content_encoding]);
  return request;
}

bool RequestReader::is_head_method() const {
  return parser_.get().method() == http::verb::head;
}

bool RequestReader::expects_continue() const {
  return equal(parser_.get()[http::field::expect], "100-continue");
}

std::optional<HttpError> parse_failure(const boost::system::error_code& error, std::uint64_t body_limit) {
  if (error.category() != http::make_error_code(http::error::bad_version).category()) return std::nullopt;
  if (error == http::error::end_of_stream || error == http::error::partial_message) return std::nullopt;
  if (error == http::error::body_limit) {
    return too_large(fmt::format("The request body is too large: expected at most {} bytes.", body_limit));
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return HttpError(431, "invalid_request_error", "The header fields of the request are too large.");
  }
  if (error == http::error::bad_version) {
    return HttpError(505, "invalid_request_error", "Only HTTP/1.0 and HTTP/1.1 are spoken here.");
  }
  return bad_request("Not a valid HTTP request: " + error.message());
}

}  // namespace thalweg::serve
