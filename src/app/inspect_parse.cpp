// `thalweg inspect parse`: the output parser, fed from standard input.
#include <fmt/format.h>

#include <cstdint>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/commands.hpp"
#include "app/model_option.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "text/output_parser.hpp"

namespace thalweg::app {
namespace {

using text::ParseEvent;

constexpr const char* kAsStreamed = "as-streamed";
constexpr const char* kClosed = "closed";

struct Options {
  std::string model;
  std::string tokenizer;
  std::string cut_arguments = kAsStreamed;
};

struct Vocabulary {
  explicit Vocabulary(const std::string& file)
      : tokenizer(text::Tokenizer::load(file)), specials(text::find_special_tokens(tokenizer)) {}
  text::Tokenizer tokenizer;
  text::SpecialTokens specials;
};

const Json& member(const Json& line, const char* name, const std::string& subject) {
  const auto found = line.find(name);
  if (found == line.end()) throw InputError(subject, fmt::format("member \"{}\"", name), "none");
  return *found;
}

// A case of the golden file may be given whole, so the members that hold its expectations are allowed.
void check_members(const Json& line, const std::string& subject) {
  if (!line.is_object()) throw InputError(subject, "an object", line.type_name());
  for (const auto& [name, value] : line.items()) {
    if (name == "start" || name == "chunks" || name == "ids" || name == "backend_finish") continue;
    if (name == "name" || name == "events" || name == "message" || name == "stop_sequence") continue;
    throw InputError(subject + "." + name, "unknown member");
  }
  if (line.contains("chunks") == line.contains("ids")) {
    throw InputError(subject, "either \"chunks\" or \"ids\"", line.contains("ids") ? "both" : "neither");
  }
}

void feed_chunks(text::OutputParser& parser, const Json& chunks, const std::string& subject,
                 std::vector<ParseEvent>& events) {
  if (!chunks.is_array()) throw InputError(subject, "a list of strings", chunks.type_name());
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (!chunks[i].is_string()) {
      throw InputError(fmt::format("{}[{}]", subject, i), "a string", chunks[i].type_name());
    }
    parser.feed(std::string_view(chunks[i].get_ref<const std::string&>()), events);
  }
}

void feed_ids(text::OutputParser& parser, const Json& ids, const std::string& subject,
              std::vector<ParseEvent>& events) {
  if (!ids.is_array()) throw InputError(subject, "a list of token ids", ids.type_name());
  constexpr std::int64_t kMax = std::numeric_limits<text::TokenId>::max();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Json& id = ids[i];
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0 || id.get<std::int64_t>() > kMax) {
      throw InputError(fmt::format("{}[{}]", subject, i), "a token id", to_text(id));
    }
    parser.feed(id.get<text::TokenId>(), events);
  }
}

text::BackendFinish finish_of(const Json& line, const std::string& subject) {
  const Json& value = member(line, "backend_finish", subject);
  if (value.is_string()) {
    if (const auto finish = text::backend_finish_from_string(value.get_ref<const std::string&>()))
      return *finish;
  }
  throw InputError(subject + ".backend_finish",
                   "stop, length, content_filter or insufficient_system_resource", to_text(value));
}

Json optional_text(const std::optional<std::string>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json describe(const std::vector<ParseEvent>& events, text::BackendFinish finish) {
  text::MessageAccumulator accumulator;
  Json listed = Json::array();
  for (const ParseEvent& event : events) {
    accumulator.add(event);
    if (event.kind != ParseEvent::Kind::call_end) listed.push_back({to_string(event.kind), event.text});
  }
  const text::ParsedMessage message = accumulator.finish(finish);
  Json calls = Json::array();
  for (const text::ParsedCall& call : message.calls) {
    calls.push_back(Json{{"name", call.name}, {"arguments", call.arguments}});
  }
  return Json{{"events", std::move(listed)},
              {"message",
               {{"reasoning_content", optional_text(message.reasoning)},
                {"content", message.content},
                {"tool_calls", std::move(calls)},
                {"finish_reason", to_string(message.finish_reason)}}},
              {"stop_sequence", optional_text(message.stop_sequence)}};
}

Json parse_line(const Json& line, const Options& options, const Vocabulary& vocabulary,
                const std::string& subject) {
  check_members(line, subject);
  text::ParserStart start = text::parser_start_from_json(member(line, "start", subject), subject + ".start");
  if (options.cut_arguments == kClosed) start.cut_arguments = text::CutArguments::closed;
  const text::BackendFinish finish = finish_of(line, subject);
  const bool tokens = line.contains("ids");
  text::OutputParser parser = tokens ? text::OutputParser(start, vocabulary.tokenizer, vocabulary.specials)
                                     : text::OutputParser(start);
  std::vector<ParseEvent> events;
  if (tokens) {
    feed_ids(parser, line["ids"], subject + ".ids", events);
  } else {
    feed_chunks(parser, line["chunks"], subject + ".chunks", events);
  }
  parser.finish(events);
  return describe(events, finish);
}

void run(const Options& options) {
  const Vocabulary vocabulary(options.tokenizer.empty()
                                  ? (model_directory(options.model) / "tokenizer.json").string()
                                  : options.tokenizer);
  std::string line;
  for (std::size_t number = 1; std::getline(std::cin, line); ++number) {
    const std::string subject = fmt::format("line {}", number);
    std::cout << to_text(parse_line(parse_json(line, subject), options, vocabulary, subject)) << std::endl;
  }
  if (!std::cout) throw WorkError("standard output: write failed");
}

}  // namespace

void add_inspect_parse(CLI::App& inspect) {
  CLI::App* command = inspect.add_subcommand(
      "parse",
      "Parse model output: JSON lines {\"start\", \"chunks\" or \"ids\", \"backend_finish\"} in, "
      "{\"events\", \"message\", \"stop_sequence\"} out");
  auto options = std::make_shared<Options>();
  CLI::Option* model = add_model_option(*command, options->model);
  command->add_option("--tokenizer", options->tokenizer, "tokenizer.json to use instead of the checkpoint's")
      ->type_name("FILE")
      ->excludes(model);
  command
      ->add_option("--cut-arguments", options->cut_arguments,
                   "What becomes of arguments that the end of the output cuts off: as-streamed (the default) "
                   "leaves them, closed makes them a JSON object")
      ->check(CLI::IsMember({kAsStreamed, kClosed}).description(""))
      ->type_name("as-streamed|closed");
  command->add_flag("--json")->description("Changes nothing: the output is always JSON lines");
  command->callback([options] { run(*options); });
}

}  // namespace thalweg::app
