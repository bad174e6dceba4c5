// Measured step-cost curves kept as data, so that an engine need not measure them at every start.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/speculation/step_cost.hpp"

namespace thalweg::engine {

/// By key: what a curve depends on (backend, device, precision, threads, model, mode, sizes), in words.
using StepCurves = std::map<std::string, std::vector<StepCostPoint>>;

/// Reads {"format": "thalweg step costs 1", "curves": {KEY: [[rows, ms], ...]}}. Throws InputError with
/// `subject` and the path of the member at fault: rows must rise from at least 1, times be finite and above
/// 0.
StepCurves parse_step_curves(std::string_view text, const std::string& subject);
std::string to_text(const StepCurves& curves);

/// The curve of `key` in `file`; if it is not there, what `measure` returns, which is added to the file (made
/// if it is missing, replaced as a whole by a rename). Throws as `parse_step_curves`, and WorkError if the
/// file cannot be read or written.
std::vector<StepCostPoint> stored_curve(const std::filesystem::path& file, const std::string& key,
                                        const std::function<std::vector<StepCostPoint>()>& measure);

}  // namespace thalweg::engine
