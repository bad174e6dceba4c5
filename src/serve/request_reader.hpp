// From bytes of HTTP/1.1 to requests, on Beast's parser.
#pragma once

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <cstdint>
#include <optional>

#include "serve/errors.hpp"
#include "serve/http_types.hpp"

namespace thalweg::serve {

/// Reads one request.
class RequestReader {
 public:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  RequestReader(std::uint32_t header_limit, std::uint64_t body_limit);

  /// For asynchronous reads.
  Parser& parser() { return parser_; }

  /// What is wrong with the header fields, once they are read; none if they can be served.
  std::optional<HttpError> check_head() const;
  /// The request without its body.
  HttpRequest head() const;
  /// Takes the body, once it is read.
  std::string take_body() { return std::move(parser_.get().body()); }

  bool is_head_method() const;
  bool keep_alive() const { return parser_.get().keep_alive(); }
  /// HTTP/1.1: bodies may be chunked.
  bool chunks_allowed() const { return parser_.get().version() >= 11; }
  /// The client waits for "100 Continue" before it sends the body.
  bool expects_continue() const;

 private:
  Parser parser_;
};

/// What an error of the parser means to the client; none if it is the connection's end.
std::optional<HttpError> parse_failure(const boost::system::error_code& error, std::uint64_t body_limit);

}  // namespace thalweg::serve
