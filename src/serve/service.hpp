// The service without its sockets: requests in, replies and growing answers out (docs/serving.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "serve/answer_stream.hpp"
#include "serve/api_keys.hpp"
#include "serve/backend.hpp"
#include "serve/http_types.hpp"
#include "serve/message_memory.hpp"
#include "serve/metrics.hpp"
#include "serve/request_log.hpp"
#include "serve/response_store.hpp"
#include "serve/routes.hpp"
#include "wire/read_request.hpp"

namespace thalweg::serve {

struct ServiceOptions {
  wire::Policy policy;
  ApiKeys keys;
  std::uint64_t max_waiting = 1024;                ///< requests waiting for the engine at most; more get 429
  std::size_t max_unread = std::size_t{4} << 20;   ///< bytes of an answer that may wait for a slow reader
  std::size_t remembered = std::size_t{64} << 20;  ///< bytes of generated messages kept for exact replay
  ResponseLimits responses;                        ///< answers of Responses kept for later requests
  std::string cors_origin;                         ///< Access-Control-Allow-Origin; empty: none
  std::string version;
  std::string request_log;  ///< file that gets a JSON line a request; empty: none
};

/// What GET /version tells about the model.
struct ModelInfo {
  std::string name;
  std::string digest;  ///< of the checkpoint; system_fingerprint is made of it
  std::string engine;
};

/// Thread-safe. Answers that it gave out must be gone before it and the backend are.
class Service {
 public:
  using Outcome = std::variant<HttpReply, std::unique_ptr<AnswerStream>>;

  /// Throws WorkError if the request log cannot be opened.
  explicit Service(ServiceOptions options);

  /// What start-up is doing; shown by GET /ready until open() is called.
  void loading(const std::string& phase, std::int64_t done, std::int64_t total);
  /// From now on requests are served. `backend` must outlive the service.
  void open(Backend& backend, ModelInfo info);
  /// From now on new generation requests are refused with 503.
  void drain() { draining_.store(true); }
  bool draining() const { return draining_.load(); }

  /// What can be said once the header fields are known and before the body is read: refusals, and nothing if
  /// the body is wanted.
  std::optional<HttpReply> check(const HttpRequest& request);
  /// Answers a whole request. May take as long as encoding its prompt takes. Never throws for what a client
  /// can cause.
  Outcome handle(const HttpRequest& request);
  /// The reply to something that is not a request the service can read; for the connection.
  HttpReply refuse(const HttpRequest& request, const HttpError& error);

  Metrics& metrics() { return metrics_; }

 private:
  struct Call;

  Backend& backend();
  Outcome answer(Call& call);
  Outcome generate(Call& call, wire::Api api);
  Outcome complete(Call& call);
  wire::Request read_responses(const Call& call, const Json& body, ResponseStore::Turns& earlier);
  ResponseSink keep_response(const std::string& owner, ResponseStore::Turns earlier, const Json& body);
  HttpReply stored_response(const Call& call);
  HttpReply count_tokens(const Call& call);
  HttpReply models(const std::string& path) const;
  HttpReply ready() const;
  HttpReply version() const;
  HttpReply metrics_page();
  LogEntry log_entry(const Call& call) const;
  std::unique_ptr<AnswerStream> submit(Call& call, std::unique_ptr<Protocol> protocol, bool streams,
                                       engine::Request request, const std::vector<std::string>& ignored);
  void check_key(Call& call) const;
  void check_head(Call& call);
  void finish_headers(const Call& call, HttpHeaders& headers) const;
  AnswerHead head(std::string_view prefix, const std::string& model) const;

  ServiceOptions options_;
  Metrics metrics_;
  RequestLog log_;
  MessageMemory memory_;
  ResponseStore responses_;
  std::atomic<Backend*> backend_{nullptr};
  std::atomic<bool> draining_{false};
  std::int64_t started_;

  mutable std::mutex mutex_;
  ModelInfo info_;
  std::string phase_ = "starting";
  std::int64_t done_ = 0;
  std::int64_t total_ = 0;
};

}  // namespace thalweg::serve
