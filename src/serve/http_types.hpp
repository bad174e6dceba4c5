// A request and a reply, as far as the service cares about HTTP.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace thalweg::serve {

struct HttpRequest {
  std::string method;
  std::string target;         ///< path and query, as sent
  std::string authorization;  ///< header fields, empty if absent
  std::string api_key;        ///< x-api-key
  std::string request_id;     ///< x-request-id
  std::string traceparent;
  std::string origin;
  std::string encoding;  ///< content-encoding
  std::string body;
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  HttpHeaders headers;
  std::string body;
};

}  // namespace thalweg::serve
