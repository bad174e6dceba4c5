// Sparse attention, index scores and selection over caches of many sequences.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>

#include "backend/cuda/attention.hpp"
#include "backend/cuda/indexer.hpp"
#include "bench/bench_weights.hpp"
#include "bench/kernel_bench.hpp"
#include "bench/random_fill.hpp"

namespace thalweg::bench {
namespace {

using cuda::AttentionInput;
using cuda::AttentionRow;
using cuda::DeviceArray;
using cuda::IndexInput;
using cuda::IndexRow;

constexpr int ring_rows = 134;
constexpr int window_keys = 128;
constexpr int selected_keys = 512;
constexpr int page_rows = 64;
constexpr int sequence_pages = 1024;

std::vector<int> table_of(int sequences, int pages) {
  std::vector<int> table(static_cast<std::size_t>(sequences) * pages);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int>(i);
  std::shuffle(table.begin(), table.end(), std::mt19937(1));
  return table;
}

struct AttentionBuffers {
  DeviceArray<std::uint16_t> q;
  DeviceArray<AttentionRow> rows;
  DeviceArray<std::uint8_t> window;
  DeviceArray<std::uint8_t> compressed;
  DeviceArray<int> tables;
  std::vector<DeviceArray<int>> selections;
  DeviceArray<float> sinks;
  DeviceArray<float2> rotations;
  DeviceArray<std::uint16_t> out;
};

// Rows of `size` bytes of random codes with scales of moderate size behind them.
void fill_cache_rows(DeviceArray<std::uint8_t>& memory, bool e4m3) {
  fill_bytes(memory.data(), memory.size(), e4m3 ? 0 : 0x28, e4m3 ? 120 : 0x47, e4m3, 7);
}

std::vector<KernelCase::Launcher> prepare_attention(int sequences, int tokens, bool window_only) {
  const auto buffers = std::make_shared<AttentionBuffers>();
  const int count = sequences * tokens;
  const int copies = window_only ? 1 : std::min(rotating_copies(count * 512.0 * 288), 32);
  buffers->q = DeviceArray<std::uint16_t>(static_cast<std::size_t>(count) * 64 * 512);
  fill_bf16(buffers->q.data(), buffers->q.size(), 0.5f, 5);
  std::vector<AttentionRow> rows;
  for (int i = 0; i < count; ++i) {
    rows.push_back({i / tokens, i / tokens, 1000 + i, window_keys, window_only ? 0 : selected_keys});
  }
  buffers->rows = DeviceArray<AttentionRow>(rows);
  buffers->window =
      DeviceArray<std::uint8_t>(static_cast<std::size_t>(sequences) * ring_rows * cuda::window_row_bytes);
  fill_cache_rows(buffers->window, true);
  if (!window_only) {
    buffers->tables = DeviceArray<int>(table_of(sequences, sequence_pages));
    buffers->compressed = DeviceArray<std::uint8_t>(static_cast<std::size_t>(sequences) * sequence_pages *
                                                    page_rows * cuda::compressed_row_bytes);
    fill_cache_rows(buffers->compressed, false);
    std::mt19937 random(3);
    constexpr int step = sequence_pages * page_rows / selected_keys;
    for (int copy = 0; copy < copies; ++copy) {
      std::vector<int> selection(static_cast<std::size_t>(count) * selected_keys);
      for (std::size_t i = 0; i < selection.size(); ++i) {
        selection[i] = static_cast<int>(i % selected_keys * step + random() % step);
      }
      buffers->selections.emplace_back(selection);
    }
  }
  buffers->sinks = DeviceArray<float>(std::size_t{64});
  fill_float(buffers->sinks.data(), 64, -1, 1, 8);
  buffers->rotations = DeviceArray<float2>(static_cast<std::size_t>(count) * 32);
  fill_float(reinterpret_cast<float*>(buffers->rotations.data()), buffers->rotations.size() * 2, -0.7f, 0.7f,
             9);
  buffers->out = DeviceArray<std::uint16_t>(8 * cuda::operand_values(count, 4096));
  std::vector<KernelCase::Launcher> launchers;
  for (int copy = 0; copy < copies; ++copy) {
    launchers.push_back([buffers, count, copy](cudaStream_t stream) {
      AttentionInput input;
      input.q = buffers->q.data();
      input.rows = buffers->rows.data();
      input.row_count = count;
      input.window = {buffers->window.data(), std::size_t{ring_rows} * cuda::window_row_bytes, ring_rows};
      input.compressed = {buffers->compressed.data(), std::size_t{page_rows} * cuda::compressed_row_bytes,
                          page_rows, buffers->tables.data(), sequence_pages};
      input.selection = buffers->selections.empty() ? nullptr : buffers->selections[copy].data();
      input.sinks = buffers->sinks.data();
      input.rotations = buffers->rotations.data();
      cuda::sparse_attention(input, {buffers->out.data(), count, 4096}, stream);
    });
  }
  return launchers;
}

struct IndexBuffers {
  DeviceArray<std::uint16_t> queries;
  DeviceArray<float> weights;
  DeviceArray<IndexRow> rows;
  DeviceArray<std::uint8_t> keys;
  DeviceArray<int> tables;
  DeviceArray<int> candidates;
  DeviceArray<std::uint16_t> scores;
};

std::vector<KernelCase::Launcher> prepare_index(int sequences, int tokens, int keys, bool candidates) {
  const auto buffers = std::make_shared<IndexBuffers>();
  const int context = candidates ? 131072 : keys;
  const int pages = context / 64;
  const int count = sequences * tokens;
  buffers->queries = random_operand(count * cuda::index_heads, cuda::index_width);
  buffers->weights = DeviceArray<float>(static_cast<std::size_t>(count) * cuda::index_heads);
  fill_float(buffers->weights.data(), buffers->weights.size(), -1, 1, 4);
  // A candidate row has one token; several tokens of a sequence are several rows.
  std::vector<IndexRow> rows;
  for (int i = 0; i < (candidates ? count : sequences); ++i) {
    rows.push_back(candidates ? IndexRow{i / tokens, i, 1, keys} : IndexRow{i, i * tokens, tokens, keys});
  }
  buffers->rows = DeviceArray<IndexRow>(rows);
  const std::size_t page_bytes = 8 * cuda::index_unit_bytes;
  buffers->keys = DeviceArray<std::uint8_t>(page_bytes * pages * sequences);
  fill_bytes(buffers->keys.data(), buffers->keys.size(), 100, 127, false, 6);
  buffers->tables = DeviceArray<int>(table_of(sequences, pages));
  if (candidates) {
    std::vector<int> blocks(static_cast<std::size_t>(count) * keys / 8);
    std::mt19937 random(2);
    for (std::size_t i = 0; i < blocks.size(); ++i)
      blocks[i] = static_cast<int>(i % (keys / 8) * 8 + random() % 8);
    buffers->candidates = DeviceArray<int>(blocks);
  }
  buffers->scores = DeviceArray<std::uint16_t>(static_cast<std::size_t>(count) * keys);
  return {[buffers, rows, tokens, keys, pages, page_bytes, candidates](cudaStream_t stream) {
    IndexInput input;
    input.queries = buffers->queries.data();
    input.weights = buffers->weights.data();
    input.rows = buffers->rows.data();
    input.row_count = static_cast<int>(rows.size());
    input.max_tokens = candidates ? 1 : tokens;
    input.max_keys = keys;
    input.keys = {buffers->keys.data(), page_bytes, 64, buffers->tables.data(), pages};
    input.candidates = candidates ? buffers->candidates.data() : nullptr;
    input.candidate_stride = keys / 8;
    input.score_stride = keys;
    cuda::index_scores(input, buffers->scores.data(), stream);
  }};
}

struct SelectBuffers {
  DeviceArray<std::uint16_t> scores;
  DeviceArray<int> counts;
  DeviceArray<int> out;
};

std::vector<KernelCase::Launcher> prepare_select(int rows, int count) {
  const auto buffers = std::make_shared<SelectBuffers>();
  const std::size_t values = static_cast<std::size_t>(rows) * count;
  const int copies = rotating_copies(2.0 * static_cast<double>(values));
  buffers->scores = DeviceArray<std::uint16_t>(values * copies);
  fill_bf16(buffers->scores.data(), buffers->scores.size(), 8.0f, 10);
  buffers->counts = DeviceArray<int>(std::vector<int>(rows, count));
  buffers->out = DeviceArray<int>(static_cast<std::size_t>(rows) * selected_keys);
  std::vector<KernelCase::Launcher> launchers;
  for (int copy = 0; copy < copies; ++copy) {
    launchers.push_back([buffers, rows, count, offset = copy * values](cudaStream_t stream) {
      cuda::select_largest(buffers->scores.data() + offset, rows, count, buffers->counts.data(), nullptr,
                           selected_keys, buffers->out.data(), nullptr, stream);
    });
  }
  return launchers;
}

}  // namespace

std::vector<KernelCase> attention_cases() {
  std::vector<KernelCase> cases;
  const auto work = [](int rows, int sequences, bool window_only) {
    const double keys = window_only ? 128 : 640;
    return Work{sequences * 128.0 * 528 + (window_only ? 0.0 : rows * 512.0 * 288) + rows * 131072.0,
                rows * keys * 131072};
  };
  for (const int sequences : {64, 128, 256}) {
    for (const int tokens : {1, 4, 6}) {
      for (const bool window_only : {false, true}) {
        const int rows = sequences * tokens;
        cases.push_back({"attn",
                         fmt::format("decode{}_B{}_q{}", window_only ? "_swa_only" : "", sequences, tokens),
                         "B", sequences, work(rows, sequences, window_only),
                         [=] { return prepare_attention(sequences, tokens, window_only); }});
      }
    }
  }
  cases.push_back({"attn", "prefill_S4096_k640", "S", 4096, work(4096, 4096, false),
                   [] { return prepare_attention(32, 128, false); }});
  return cases;
}

std::vector<KernelCase> index_cases() {
  struct Kind {
    const char* name;
    int keys;
    bool candidates;
  };
  std::vector<KernelCase> cases;
  for (const Kind& kind :
       {Kind{"ratio1", 131072, false}, Kind{"ratio2", 65536, false}, Kind{"candidates", 16384, true}}) {
    for (const int sequences : {64, 128}) {
      for (const int tokens : {1, 2, 6}) {
        const double rows = sequences * tokens;
        const double key_rows = kind.candidates ? rows : sequences;
        cases.push_back(
            {"index", fmt::format("paged_{}_B{}_q{}", kind.name, sequences, tokens), "B", sequences,
             Work{key_rows * kind.keys * 68.0 + rows * kind.keys * 2.0, rows * kind.keys * 8192.0},
             [=] { return prepare_index(sequences, tokens, kind.keys, kind.candidates); }});
      }
    }
  }
  return cases;
}

std::vector<KernelCase> selection_cases() {
  std::vector<KernelCase> cases;
  for (const int count : {131072, 65536, 16384}) {
    for (const int rows : {64, 128, 384, 768}) {
      cases.push_back({"topk", fmt::format("k512_n{}_B{}", count, rows), "B", rows,
                       Work{2.0 * rows * count, 0}, [=] { return prepare_select(rows, count); }});
    }
  }
  return cases;
}

}  // namespace thalweg::bench
