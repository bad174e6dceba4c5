#include "text/parser_markup.hpp"

#include <string_view>
#include <utility>

namespace thalweg::text {
namespace {

// One row of a state's table. In `pattern`, \1 stands for </think> and \2 for ｜DSML｜.
struct Row {
  std::string_view pattern;
  MarkerAction action;
  bool swallows_newlines = false;
};

constexpr Row kOpenBlock = {"<\2", MarkerAction::open_block, true};

void append_spelling(std::vector<Symbol>& out, std::string_view text) {
  for (const char c : text) out.push_back(static_cast<unsigned char>(c));
}

std::vector<Symbol> symbols_of(std::string_view pattern, MarkupForm form) {
  std::vector<Symbol> symbols;
  for (const char c : pattern) {
    if (c == '\1' && form == MarkupForm::tokens) {
      symbols.push_back(kEndThink);
    } else if (c == '\1') {
      append_spelling(symbols, "</think>");
    } else if (c == '\2' && form == MarkupForm::tokens) {
      symbols.push_back(kDsml);
    } else if (c == '\2') {
      append_spelling(symbols, "｜DSML｜");
    } else {
      symbols.push_back(static_cast<unsigned char>(c));
    }
  }
  return symbols;
}

std::shared_ptr<const WatchedMarkers> watch(const std::vector<Row>& rows, MarkupForm form,
                                            const std::vector<std::string>& stops = {}) {
  std::vector<Marker> markers;
  std::vector<MarkerAction> actions(stops.size(), MarkerAction::stop);
  for (const std::string& stop : stops) append_spelling(markers.emplace_back().symbols, stop);
  for (const Row& row : rows) {
    markers.push_back({symbols_of(row.pattern, form), row.swallows_newlines});
    actions.push_back(row.action);
  }
  return std::make_shared<const WatchedMarkers>(
      WatchedMarkers{MarkerSet(std::move(markers)), std::move(actions)});
}

}  // namespace

std::shared_ptr<const ParserMarkup> make_parser_markup(const ParserStart& start, MarkupForm form) {
  using Action = MarkerAction;
  auto markup = std::make_shared<ParserMarkup>();
  markup->start = start;
  const auto set = [&](ParserState state, std::vector<Row> rows, const std::vector<std::string>& stops = {}) {
    markup->watched[static_cast<std::size_t>(state)] = watch(rows, form, stops);
  };
  const std::vector<Row> block = start.parse_tool_calls ? std::vector<Row>{kOpenBlock} : std::vector<Row>{};
  const auto and_block = [&](std::vector<Row> before, const std::vector<Row>& after) {
    before.insert(before.end(), block.begin(), block.end());
    before.insert(before.end(), after.begin(), after.end());
    return before;
  };
  set(ParserState::reasoning, and_block({}, {{"\1", Action::end_reasoning, true}}));
  set(ParserState::answer, and_block({}, {{"\1", Action::drop}}), start.stop_sequences);
  if (start.parse_json_output) {
    set(ParserState::seek_json, and_block({{"```json\n", Action::open_fence},
                                           {"```\n", Action::open_fence},
                                           {"{", Action::open_bracket},
                                           {"[", Action::open_bracket}},
                                          {{"\1", Action::drop}}));
    set(ParserState::json, {{"\n```", Action::close_fence}}, start.stop_sequences);
    set(ParserState::after_json, block);
  }
  if (start.parse_tool_calls || start.starts_in_tool_calls) {
    set(ParserState::calls, {{"invoke name=\"", Action::begin_name},
                             {"</\2 calls>", Action::end_block},
                             {"</\2tool_calls>", Action::end_block}});
    set(ParserState::name, {{"\"", Action::end_name}});
    set(ParserState::arguments, {{"parameter name=\"", Action::begin_key}, {"</\2", Action::end_call}});
    set(ParserState::key, {{"\"", Action::end_key}});
    set(ParserState::type, {{"true\">", Action::begin_string}, {"false\">", Action::begin_raw}});
    set(ParserState::string_value, {{"</\2", Action::end_string}});
    set(ParserState::raw_value, {{"</\2", Action::end_raw}});
  }
  return markup;
}

}  // namespace thalweg::text
