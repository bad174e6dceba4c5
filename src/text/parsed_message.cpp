#include "text/parsed_message.hpp"

#include <array>
#include <utility>

namespace thalweg::text {

std::string_view to_string(ParseEvent::Kind kind) {
  constexpr std::array<std::string_view, 6> kNames = {"reasoning", "content",  "call",
                                                      "args",      "call_end", "stop"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string_view to_string(FinishReason reason) {
  constexpr std::array<std::string_view, 5> kNames = {"stop", "tool_calls", "length", "content_filter",
                                                      "insufficient_system_resource"};
  return kNames.at(static_cast<std::size_t>(reason));
}

std::optional<BackendFinish> backend_finish_from_string(std::string_view text) {
  if (text == "stop") return BackendFinish::stop;
  if (text == "length") return BackendFinish::length;
  if (text == "content_filter") return BackendFinish::content_filter;
  if (text == "insufficient_system_resource") return BackendFinish::insufficient_system_resource;
  return std::nullopt;
}

void MessageAccumulator::add(const ParseEvent& event) {
  switch (event.kind) {
    case ParseEvent::Kind::reasoning:
      if (!message_.reasoning) message_.reasoning.emplace();
      *message_.reasoning += event.text;
      return;
    case ParseEvent::Kind::content:
      message_.content += event.text;
      return;
    case ParseEvent::Kind::call:
      message_.calls.emplace_back().name = event.text;
      return;
    case ParseEvent::Kind::arguments:
      message_.calls.at(event.call).arguments += event.text;
      return;
    case ParseEvent::Kind::call_end:
      message_.calls.at(event.call).complete = true;
      return;
    case ParseEvent::Kind::stop:
      message_.stop_sequence = event.text;
      return;
  }
}

ParsedMessage MessageAccumulator::finish(BackendFinish finish) {
  const auto reason = [&] {
    if (message_.stop_sequence) return FinishReason::stop;
    switch (finish) {
      case BackendFinish::length:
        return FinishReason::length;
      case BackendFinish::content_filter:
        return FinishReason::content_filter;
      case BackendFinish::insufficient_system_resource:
        return FinishReason::insufficient_system_resource;
      case BackendFinish::stop:
        break;
    }
    return message_.calls.empty() ? FinishReason::stop : FinishReason::tool_calls;
  };
  message_.finish_reason = reason();
  return std::exchange(message_, {});
}

}  // namespace thalweg::text
