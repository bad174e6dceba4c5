// The states of the output parser and the markers each of them watches.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "text/marker_matcher.hpp"
#include "text/parser_start.hpp"

namespace thalweg::text {

enum class ParserState : std::uint8_t {
  reasoning,
  answer,
  seek_json,   ///< the answer in JSON mode, before the JSON
  json,        ///< the JSON in JSON mode
  after_json,  ///< behind the fence that closed it
  calls,       ///< inside the block, outside a call
  name,        ///< of the tool
  arguments,   ///< inside a call, outside a parameter
  key,         ///< name of the parameter
  type,        ///< between key and value
  string_value,
  raw_value,
  done,
};
inline constexpr std::size_t kParserStates = 13;

/// What a marker does when it completes; the state it leads to is part of the meaning.
enum class MarkerAction : std::uint8_t {
  stop,           ///< a stop sequence
  open_block,     ///< <{D}
  end_reasoning,  ///< </think> in the reasoning
  drop,           ///< </think> in the answer
  open_fence,     ///< ``` before JSON
  open_bracket,   ///< { or [
  close_fence,    ///< ``` after JSON
  begin_name,
  end_block,
  end_name,
  begin_key,
  end_call,
  end_key,
  begin_string,
  begin_raw,
  end_string,
  end_raw,
};

/// The markers of one state, and what each of them does.
struct WatchedMarkers {
  MarkerSet set;
  std::vector<MarkerAction> actions;  ///< by index of the marker
};

/// How markup appears in what the parser is fed.
enum class MarkupForm {
  tokens,  ///< </think> and ｜DSML｜ are special tokens
  text,    ///< they are spelled
};

/// Everything that stays the same while one output is parsed. Shared by the copies of a parser.
struct ParserMarkup {
  ParserStart start;
  /// By state; null for `done`. Stop sequences are the first markers of their states, in the order given.
  std::array<std::shared_ptr<const WatchedMarkers>, kParserStates> watched;
};

std::shared_ptr<const ParserMarkup> make_parser_markup(const ParserStart& start, MarkupForm form);

}  // namespace thalweg::text
