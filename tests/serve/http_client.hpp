// A plain HTTP client on a blocking socket, able to send what is not HTTP at all.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

#include "base/json.hpp"

namespace thalweg::testing {

struct ClientReply {
  int status = 0;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;                            ///< chunks joined

  Json json() const { return parse_json(body, "reply"); }
};

class HttpClient {
 public:
  explicit HttpClient(std::uint16_t port, int receive_buffer = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) {
      ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot connect");
    }
  }
  ~HttpClient() { close(); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  /// False: the other side has closed.
  bool send(const std::string& bytes) {
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t n = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<std::size_t>(n);
    }
    return true;
  }

  static std::string request(const std::string& method, const std::string& path, const std::string& body,
                             const std::string& more_headers = "") {
    std::string head = method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + more_headers;
    if (!body.empty()) head += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    return head + "\r\n" + body;
  }

  ClientReply post(const std::string& path, const std::string& body, const std::string& headers = "") {
    send(request("POST", path, body, headers));
    return read_reply();
  }
  ClientReply get(const std::string& path, const std::string& headers = "") {
    send(request("GET", path, "", headers));
    return read_reply();
  }

  /// The next reply; status 0 if the connection ended instead.
  ClientReply read_reply(bool has_body = true) {
    ClientReply reply;
    const std::size_t end = fill_until("\r\n\r\n", 0);
    if (end == std::string::npos) return reply;
    parse_head(received_.substr(0, end), reply);
    received_.erase(0, end + 4);
    if (!has_body) return reply;
    if (reply.headers.contains("transfer-encoding")) {
      read_chunks(reply.body);
    } else if (reply.headers.contains("content-length")) {
      const std::size_t length = std::stoul(reply.headers["content-length"]);
      while (received_.size() < length && fill()) {
      }
      reply.body = received_.substr(0, length);
      received_.erase(0, length);
    } else if (reply.status != 204) {
      while (fill()) {
      }
      reply.body = std::exchange(received_, {});
    }
    return reply;
  }

  /// Reads until `text` has come in; false: the connection ended before.
  bool read_until(const std::string& text) { return fill_until(text, 0) != std::string::npos; }
  /// True once the other side has closed and everything was read.
  bool read_to_end() {
    while (fill()) {
    }
    return true;
  }
  const std::string& received() const { return received_; }

 private:
  bool fill() {
    char buffer[65536];
    const ssize_t n = ::recv(socket_, buffer, sizeof buffer, 0);
    if (n <= 0) return false;
    received_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }

  std::size_t fill_until(const std::string& text, std::size_t from) {
    while (true) {
      const std::size_t at = received_.find(text, from);
      if (at != std::string::npos) return at;
      if (!fill()) return std::string::npos;
    }
  }

  static void parse_head(const std::string& head, ClientReply& reply) {
    reply.status = std::stoi(head.substr(9, 3));
    std::size_t line = head.find("\r\n");
    while (line != std::string::npos) {
      const std::size_t begin = line + 2;
      line = head.find("\r\n", begin);
      const std::string field = head.substr(begin, line - begin);
      const std::size_t colon = field.find(':');
      std::string name = field.substr(0, colon);
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
      reply.headers[name] = field.substr(colon + 2);
    }
  }

  void read_chunks(std::string& body) {
    while (true) {
      const std::size_t line = fill_until("\r\n", 0);
      if (line == std::string::npos) return;
      const std::size_t size = std::stoul(received_.substr(0, line), nullptr, 16);
      while (received_.size() < line + 4 + size && fill()) {
      }
      body += received_.substr(line + 2, size);
      received_.erase(0, line + 4 + size);
      if (size == 0) return;
    }
  }

  int socket_;
  std::string received_;
};

}  // namespace thalweg::testing
