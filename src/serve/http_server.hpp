// The sockets of the service: HTTP/1.1, event streams, limits and the end of it all.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "serve/service.hpp"

namespace thalweg::serve {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;  ///< 0: any free one
  std::size_t threads = 2;    ///< that serve connections
  std::size_t workers = 2;    ///< that read requests and encode prompts
  std::uint32_t max_header = 64 * 1024;
  std::uint64_t max_body = std::uint64_t{32} << 20;
  std::size_t max_connections = 0;  ///< 0: what the limit of open files allows
  std::chrono::milliseconds header_timeout{
      30'000};  ///< from the first byte of a request to the end of its head
  std::chrono::milliseconds body_timeout{120'000};  ///< for the whole body
  std::chrono::milliseconds idle_timeout{120'000};  ///< between requests of one connection
  std::chrono::milliseconds write_timeout{60'000};  ///< without a byte taken by the client
  std::chrono::milliseconds keep_alive{10'000};     ///< between signs of life while an answer is waited for
};

/// Listens from its construction on. `service` must outlive it.
class HttpServer {
 public:
  /// Throws UsageError naming --host or --port if the address cannot be listened on.
  HttpServer(Service& service, const HttpServerOptions& options);
  /// Closes every connection at once.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;

  /// Takes no more connections, lets answers that are under way finish within `limit`, tells the rest that
  /// the service gave them up, and closes everything. Returns true if no answer was cut.
  bool drain(std::chrono::milliseconds limit);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace thalweg::serve
