// Rules of config.json that tie several members together. Source: model specification, section 1.
#pragma once

#include "checkpoint/config.hpp"
#include "checkpoint/config_reader.hpp"

namespace thalweg::checkpoint {

/// Ratios, KV sources, index sources and the candidate source fit together: every compressed layer has a
/// source of its own ratio to read from. Throws through `text` (the reader of text_config), naming the member
/// at fault.
void check_layer_schedule(const ModelConfig& config, const ConfigReader& text);

/// Sizes divide as the number formats and the heads need.
void check_sizes(const ModelConfig& config, const ConfigReader& text);

/// The Engram tables have as many rows as their hash addresses.
void check_engram(const ModelConfig& config, const ConfigReader& text);

}  // namespace thalweg::checkpoint
