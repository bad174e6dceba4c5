// Bytes of HTTP: whatever comes in, the reader refuses it or makes a request that the service answers without
// an engine: with an error, or from what it knows by itself.
#include <boost/asio/buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "serve/http_wire.hpp"
#include "serve/request_reader.hpp"
#include "serve/service.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thalweg;
  constexpr std::uint32_t kMostHeader = 4096;
  constexpr std::uint64_t kMostBody = 4096;
  static serve::Service service({});
  serve::RequestReader reader(kMostHeader, kMostBody);
  boost::system::error_code error;
  auto& parser = reader.parser();
  parser.eager(true);
  const std::uint8_t* at = data;
  std::size_t left = size;
  while (left > 0 && !parser.is_done() && !error) {
    const std::size_t used = parser.put(boost::asio::buffer(at, left), error);
    if (used == 0) break;
    at += used;
    left -= used;
  }
  serve::HttpRequest request = reader.head();
  std::string bytes;
  const auto failure = error ? serve::parse_failure(error, kMostBody) : reader.check_head();
  if (failure) {
    bytes = serve::whole_reply(service.refuse(request, *failure), false, false);
  } else if (parser.is_done()) {
    request.body = reader.take_body();
    if (request.body.size() > kMostBody) std::abort();
    const serve::Service::Outcome outcome = service.handle(request);
    const auto* reply = std::get_if<serve::HttpReply>(&outcome);
    if (reply == nullptr) std::abort();  // nothing can be generated without an engine
    bytes = serve::whole_reply(*reply, reader.keep_alive(), reader.is_head_method());
  }
  // Header fields of a reply must not be split by what a client sent.
  const std::string head = bytes.substr(0, bytes.find("\r\n\r\n"));
  for (std::size_t i = 0; i < head.size(); ++i) {
    const bool alone = (head[i] == '\r' && (i + 1 == head.size() || head[i + 1] != '\n')) ||
                       (head[i] == '\n' && (i == 0 || head[i - 1] != '\r'));
    if (alone) std::abort();
  }
  return 0;
}
