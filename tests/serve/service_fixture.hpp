// A service with a recorded backend behind a real socket.
#pragma once

#include <gtest/gtest.h>

#include "serve/http_client.hpp"
#include "serve/http_server.hpp"
#include "serve/recorded_backend.hpp"

namespace thalweg::testing {

struct RunningService {
  explicit RunningService(serve::ServiceOptions service_options = {}, serve::HttpServerOptions http = {},
                          std::chrono::microseconds pace = std::chrono::microseconds(0))
      : backend(pace), service(std::move(service_options)), server(service, any_port(http)) {
    service.open(backend, {"recorded", "1", "recorded backend"});
  }

  static serve::HttpServerOptions any_port(serve::HttpServerOptions http) {
    http.port = 0;
    return http;
  }

  HttpClient client() const { return HttpClient(server.port()); }

  RecordedBackend backend;
  serve::Service service;
  serve::HttpServer server;
};

inline const std::string kChatPath = "/v1/chat/completions";

/// A Chat Completions body with one user message and these further members.
inline std::string chat_request(const std::string& more = "") {
  return R"({"model": "deepseek-flash", "messages": [{"role": "user", "content": "q"}])" +
         (more.empty() ? "" : ", " + more) + "}";
}

/// A recording that never ends by itself.
inline Json endless(const std::string& text = "x") {
  return {{"prompt_tokens", 5}, {"prompt_cache_hit_tokens", 0}, {"chunks", {text}}, {"endless", true}};
}

}  // namespace thalweg::testing
