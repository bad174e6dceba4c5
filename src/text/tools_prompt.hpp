// How tools and the calls to them stand in a prompt.
#pragma once

#include <string>
#include <vector>

#include "text/conversation.hpp"
#include "text/segment_writer.hpp"

namespace thalweg::text {

/// Opens a block of calls; with tool choice `required` the prompt ends with it.
inline constexpr std::string_view kCallsOpening = "\n\n<｜DSML｜ calls>\n";

/// The explanation of tool use with the schemas of all tools that are not deferred.
void write_tools(SegmentWriter& out, const std::vector<Tool>& tools);

/// What a system message says about tools that arrive with it.
void write_new_tools(SegmentWriter& out, const std::vector<Tool>& tools);

/// A block with `calls`, which must not be empty.
void write_calls(SegmentWriter& out, const std::vector<Call>& calls);

}  // namespace thalweg::text
