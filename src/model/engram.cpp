#include "model/engram.hpp"

namespace thalweg::model {
namespace {

// Compressed ids of a row's token and those before it, from the step itself or the plan's history.
void recent_tokens(const Model& model, const StepRows& rows, std::size_t row, std::int32_t* recent) {
  const auto& vocabulary = model.engram_vocabulary();
  const StepPlan& plan = *rows.plan();
  const RowRange& range = rows.ranges()[rows.rows()[row].sequence];
  const std::int32_t* history = plan.history.data() + rows.rows()[row].sequence * plan.lookback;
  const auto index = static_cast<std::int32_t>(row) - range.first;
  for (std::int32_t back = 0; back <= plan.lookback; ++back) {
    std::int32_t token = -1;
    if (back <= index) {
      const model::Row& source = rows.rows()[row - back];
      token = source.image ? -1 : source.token;
    } else {
      token = history[back - index - 1];
    }
    recent[back] = token < 0 ? -1 : vocabulary[token];
  }
}

}  // namespace

void engram_rows(const checkpoint::EngramHash& hash, std::int64_t pad, std::span<const std::int32_t> recent,
                 std::span<std::int64_t> rows) {
  const std::size_t orders = hash.multipliers.size() - 1;
  const std::size_t heads = hash.primes.size() / orders;
  bool blocked = false;
  std::int64_t mixed = 0;
  for (std::size_t back = 0; back < hash.multipliers.size(); ++back) {
    blocked = blocked || recent[back] < 0;
    mixed ^= (blocked ? pad : recent[back]) * hash.multipliers[back];
    if (back == 0) continue;
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t column = (back - 1) * heads + head;
      rows[column] = mixed % hash.primes[column] + hash.offsets[column];
    }
  }
}

void step_engram_rows(const Model& model, int table, const StepRows& rows, std::size_t row,
                      std::span<std::int64_t> table_rows) {
  thread_local std::vector<std::int32_t> recent;  // keeps its memory
  recent.resize(rows.plan()->lookback + 1);
  recent_tokens(model, rows, row, recent.data());
  const std::int32_t pad = model.engram_vocabulary()[model.config().engram.pad_token_id];
  engram_rows(model.engram()[table], pad, recent, table_rows);
}

}  // namespace thalweg::model
