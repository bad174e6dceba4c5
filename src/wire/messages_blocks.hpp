// The message list of the Messages API.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "text/conversation.hpp"
#include "wire/fields.hpp"
#include "wire/images.hpp"
#include "wire/pending_calls.hpp"

namespace thalweg::wire {

class MessagesReader {
 public:
  /// `tools` are those of the request, which messages may bring into view; they must outlive the reader.
  MessagesReader(IgnoredFields& ignored, const std::vector<text::Tool>& tools);

  /// Appends the messages of `list` to `out`.
  void read(const Json& list, std::vector<text::Message>& out);

 private:
  void read_message(Fields& message);
  void read_user(const Json& content, const std::string& path);
  void read_user_block(Fields& block);
  void read_result(Fields& block);
  void read_result_part(Fields& part, text::Content& content);
  void read_system(const Json& content, const std::string& path);
  void read_assistant(const Json& content, const std::string& path);
  void read_assistant_block(Fields& block, text::AssistantMessage& assistant);
  void read_call(Fields& block, text::AssistantMessage& assistant);
  text::Image read_image(Fields& block);
  std::string describe_document(Fields& block);
  void bring_tool(const text::Tool& tool, const std::string& path, std::vector<text::Tool>& out);
  const text::Tool* find_tool(const std::string& name) const;
  void expect_no_calls(bool at_end = false) const;
  void show_found_tools();

  IgnoredFields& ignored_;
  std::unordered_map<std::string, const text::Tool*> tools_;
  std::size_t brought_ = 0;  ///< size of the schemas that messages refer to, in bytes
  ImageReader images_;
  PendingCalls calls_;
  std::size_t caller_ = 0;         ///< message of the pending calls
  std::vector<text::Tool> found_;  ///< tools that the results of the current user message refer to
  std::vector<text::Message> messages_;
  std::size_t index_ = 0;
  std::size_t block_ = 0;
};

}  // namespace thalweg::wire
