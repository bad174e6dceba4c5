// A conversation as the model knows it, whatever API it came through.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json.hpp"
#include "text/tokenizer.hpp"

namespace thalweg::text {

/// How finely an image is to be looked at, as the client asked.
enum class ImageDetail { low, high, original, automatic };

/// An image that stands in a message. Only described here: nothing is fetched or decoded.
struct Image {
  enum class Kind { data_url, url };
  Kind kind = Kind::url;
  ImageDetail detail = ImageDetail::high;
  std::string url;  ///< as given; for inline images a "data:image/...;base64,..." URL
};

/// Text and images in reading order; rendered with a blank line between neighbours.
struct Content {
  using Part = std::variant<std::string, Image>;
  std::vector<Part> parts;

  Content() = default;
  explicit Content(std::string text) { parts.emplace_back(std::move(text)); }

  /// True if it renders to nothing at all.
  bool empty() const;
};

/// A function the model may call. Names of one conversation differ.
struct Tool {
  std::string name;
  std::optional<std::string> description;
  Json parameters = Json::object();  ///< JSON Schema, from parse_json; `{}` if the client gave none
  std::optional<bool> strict;
  bool deferred = false;  ///< not in the first list of tools; a system message brings it later
};

/// A call the model made. `arguments` is JSON text as the client returned it, not necessarily an object.
struct Call {
  std::string id;
  std::string name;
  std::string arguments;
};

/// Ids the model generated for a message, kept so that its history is replayed exactly (and its cache found).
/// They follow the think token of the generation header and end before EOS.
struct ReplayedIds {
  bool thinking = false;  ///< generated after `<think>`; else after `</think>`
  std::vector<TokenId> ids;
};

struct SystemMessage {
  Content content;
  std::vector<Tool> new_tools;  ///< schemas that become known here
};

struct UserMessage {
  Content content;
};

struct AssistantMessage {
  std::string content;
  std::string reasoning;
  std::vector<Call> calls;
  bool prefix = false;  ///< the model continues this message; only for the last one
  std::optional<ReplayedIds> replayed;
};

struct ToolMessage {
  Content content;
  std::string call_id;
};

struct ReminderMessage {
  std::string content;
};

using Message = std::variant<SystemMessage, UserMessage, AssistantMessage, ToolMessage, ReminderMessage>;

enum class ToolChoice { automatic, none, required };

/// What shape the answer must have.
struct ResponseFormat {
  enum class Kind { text, json_object, json_schema, regex };
  Kind kind = Kind::text;
  Json schema;          ///< json_schema: the schema as the client sent it
  bool strict = false;  ///< json_schema: the output is held to the strict subset of the schema
  std::string regex;    ///< regex: the expression
};

inline constexpr int kDefaultEffort = 75;
inline constexpr int kHighestEffort = 100;

struct Conversation {
  std::vector<Message> messages;
  bool thinking = true;
  int effort = kDefaultEffort;  ///< 1..100; no meaning with thinking off
  std::vector<Tool> tools;
  ToolChoice tool_choice = ToolChoice::automatic;  ///< `required` needs thinking off
  ResponseFormat response_format;
};

/// True if the model is told about tools and may call them.
bool tools_in_force(const Conversation& conversation);

/// True if any text the model will read (not reasoning, not arguments, not tool schemas) holds `word`, a
/// lower-case ASCII word, in any case.
bool mentions(const Conversation& conversation, std::string_view word);

}  // namespace thalweg::text
