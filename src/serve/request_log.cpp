#include "serve/request_log.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/error.hpp"
#include "base/json.hpp"

namespace thalweg::serve {
namespace {

// 2026-12-04T04:25:01.123Z
std::string now_text() {
  std::timespec now{};
  std::timespec_get(&now, TIME_UTC);
  std::tm utc{};
  ::gmtime_r(&now.tv_sec, &utc);
  char day[32];
  std::strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &utc);
  char text[48];
  std::snprintf(text, sizeof text, "%s.%03ldZ", day, now.tv_nsec / 1000000);
  return text;
}

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_zero(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c == '0'; });
}

}  // namespace

RequestLog::RequestLog(const std::string& file) : name_(file) {
  if (file.empty()) return;
  file_.open(file, std::ios::app);
  if (!file_) throw WorkError("--request-log: cannot open " + file + " for writing");
}

void RequestLog::write(const LogEntry& entry) {
  if (!file_.is_open()) return;
  Json line = {{"time", now_text()},
               {"id", entry.id},
               {"endpoint", entry.endpoint},
               {"status", entry.status},
               {"stream", entry.stream},
               {"prompt_tokens", entry.prompt_tokens},
               {"cached_tokens", entry.cached_tokens},
               {"output_tokens", entry.output_tokens},
               {"seconds", entry.seconds}};
  if (entry.first_seconds) line["first_token_seconds"] = *entry.first_seconds;
  if (!entry.trace_id.empty()) {
    line["trace_id"] = entry.trace_id;
    line["parent_span_id"] = entry.span_id;
  }
  if (!entry.error.empty()) line["error"] = entry.error;
  const std::string text = to_text(line) + '\n';
  const std::lock_guard lock(mutex_);
  file_ << text << std::flush;
  if (file_) return;
  if (!failed_)
    std::fprintf(stderr, "thalweg: the request log %s cannot be written; requests go on\n", name_.c_str());
  failed_ = true;
  file_.clear();
}

std::optional<TraceParent> parse_traceparent(std::string_view text) {
  constexpr std::size_t kLength = 2 + 1 + 32 + 1 + 16 + 1 + 2;
  // A later version may have more behind a dash.
  if (text.size() < kLength || (text.size() > kLength && (text[kLength] != '-' || text.substr(0, 2) == "00")))
    return std::nullopt;
  const std::string_view version = text.substr(0, 2);
  const std::string_view trace = text.substr(3, 32);
  const std::string_view span = text.substr(36, 16);
  const std::string_view flags = text.substr(53, 2);
  const bool dashes = text[2] == '-' && text[35] == '-' && text[52] == '-';
  if (!dashes || !is_hex(version) || version == "ff" || !is_hex(trace) || !is_hex(span) || !is_hex(flags))
    return std::nullopt;
  if (is_zero(trace) || is_zero(span)) return std::nullopt;
  return TraceParent{std::string(trace), std::string(span)};
}

}  // namespace thalweg::serve
