// The input items of the Responses API.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "text/conversation.hpp"
#include "wire/fields.hpp"
#include "wire/images.hpp"
#include "wire/pending_calls.hpp"
#include "wire/responses_tools.hpp"

namespace thalweg::wire {

/// Turns items into messages. Calls between two outputs form one assistant message, with the text and the
/// reasoning before them; outputs become tool messages; found tools arrive in a system message after the
/// outputs.
class ResponsesItems {
 public:
  ResponsesItems(IgnoredFields& ignored, ResponsesTools& tools) : ignored_(ignored), tools_(tools) {}

  /// `input`: one text of the user, or a list of items. May be called again for what comes after.
  void read(const Json& input);

  /// Appends to `messages`. Throws RejectedRequest if a call has no output.
  void finish(std::vector<text::Message>& messages);

 private:
  void read_item(Fields& item);
  void read_message(Fields& item);
  void read_reasoning(Fields& item);
  void read_function_call(Fields& item);
  void read_custom_call(Fields& item);
  void read_search_call(Fields& item);
  void read_search_output(Fields& item);
  void add_call(text::Call call, const std::string& path);
  void add_output(Fields& item, text::Content content);
  void end_calls();
  text::AssistantMessage& open_assistant();
  void end_reasoning();
  void take_reasoning(text::AssistantMessage& message);
  text::Content read_content(const Json& content, const std::string& path);
  text::Content::Part read_part(Fields& part);
  std::string read_assistant_text(Fields& item);

  IgnoredFields& ignored_;
  ResponsesTools& tools_;
  ImageReader images_;
  std::vector<text::Message> messages_;
  std::vector<std::vector<text::Tool>> found_;  ///< by each search among the outputs read since the last call
  PendingCalls calls_;
  std::unordered_set<std::string> ids_;  ///< of all calls
  std::size_t caller_ = 0;               ///< message that holds the calls, while `calls_` or `found_` matter
  std::string reasoning_;
  std::size_t index_ = 0;
};

}  // namespace thalweg::wire
