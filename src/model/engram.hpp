// The n-gram hash of Engram layers (model specification, section 3.2).
#pragma once

#include <cstdint>
#include <span>

#include "checkpoint/engram_hash.hpp"
#include "model/model.hpp"
#include "model/step_rows.hpp"

namespace thalweg::model {

/// Table rows of one position: `rows[c]` for every column of the hash (orders 2, 3, ... times heads).
/// `recent[r]` is the compressed id of the token r positions back, or -1 if that position is before the text
/// or inside an image span; from the first -1 on every farther one counts as the pad id.
void engram_rows(const checkpoint::EngramHash& hash, std::int64_t pad, std::span<const std::int32_t> recent,
                 std::span<std::int64_t> rows);

/// The same for a row of a step: table rows of Engram table `table`, from the tokens of the step and, before
/// its first row, the plan's history.
void step_engram_rows(const Model& model, int table, const StepRows& rows, std::size_t row,
                      std::span<std::int64_t> table_rows);

}  // namespace thalweg::model
