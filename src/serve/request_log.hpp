// The request log: one JSON object a line for every request that wanted something computed.
#pragma once

#include <atomic>
#include <cstdint>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>

namespace thalweg::serve {

/// What is logged of one request. Nothing that was said is in it.
struct LogEntry {
  std::string id;        ///< x-request-id
  std::string trace_id;  ///< of the client's traceparent, 32 hex digits; empty: none
  std::string span_id;   ///< of the client's traceparent, 16 hex digits
  std::string endpoint;
  int status = 0;  ///< 499: the client left, or did not read
  bool stream = false;
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t output_tokens = 0;
  double seconds = 0;                   ///< from the request to its end
  std::optional<double> first_seconds;  ///< to the first token
  std::string error;                    ///< what the client was told
};

/// Thread-safe. A log that cannot be written is reported once on stderr; requests go on.
class RequestLog {
 public:
  /// Appends to `file`; an empty name logs nothing. Throws WorkError if the file cannot be opened.
  explicit RequestLog(const std::string& file);
  void write(const LogEntry& entry);

 private:
  std::mutex mutex_;
  std::string name_;
  std::ofstream file_;
  bool failed_ = false;
};

/// Trace and span of a W3C traceparent header, e.g. 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.
struct TraceParent {
  std::string trace_id;
  std::string span_id;
};
/// None for what is not a valid traceparent: that is ignored, as the standard asks.
std::optional<TraceParent> parse_traceparent(std::string_view text);

}  // namespace thalweg::serve
