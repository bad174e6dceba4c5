#include "backend/cuda/indexer.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "backend/cuda/cache_store.hpp"
#include "numeric/block_formats.hpp"
#include "reference.hpp"

namespace thalweg::cuda::test {
namespace {

using numeric::RowFormat;

std::vector<std::uint16_t> random_bf16(std::size_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> values(count);
  for (auto& value : values) value = to_bf16(normal(random));
  return values;
}

std::vector<float2> no_rotation(std::size_t rows) {
  return std::vector<float2>(rows * 32, float2{1, 0});
}

// What Q_mxfp4_32 leaves of a row.
std::vector<float> quantised_fp4(const std::uint16_t* row, int width) {
  std::vector<float> values(width);
  for (int i = 0; i < width; ++i) values[i] = from_bf16(row[i]);
  numeric::round_row(RowFormat::mxfp4_32, values);
  return values;
}

// Keys of `sequences` sequences in shuffled pages, stored by the kernel that stores them.
struct StoredKeys {
  int page_keys;
  int table_stride;
  std::vector<std::vector<float>> values;  // [sequence * keys + j]
  DeviceArray<std::uint8_t> memory;
  DeviceArray<int> tables;

  StoredKeys(int sequences, int keys, int page_keys_, std::mt19937& random)
      : page_keys(page_keys_), table_stride((keys + page_keys_ - 1) / page_keys_) {
    std::vector<int> table(sequences * table_stride);
    std::iota(table.begin(), table.end(), 0);
    std::shuffle(table.begin(), table.end(), random);
    tables = DeviceArray<int>(table);
    memory = DeviceArray<std::uint8_t>(table.size() * page_keys / index_unit_keys * index_unit_bytes);
    memory.fill(0x5A);
    const auto rows = random_bf16(static_cast<std::size_t>(sequences) * keys * index_width, random);
    std::vector<StorePlace> places;
    for (int i = 0; i < sequences * keys; ++i) {
      places.push_back({i / keys, i % keys});
      values.push_back(quantised_fp4(&rows[static_cast<std::size_t>(i) * index_width], index_width));
    }
    const DeviceArray<std::uint16_t> row_memory(rows);
    const DeviceArray<StorePlace> place_memory(places);
    const DeviceArray<float2> rotations(no_rotation(places.size()));
    store_index_keys(row_memory.data(), sequences * keys, rotations.data(), place_memory.data(), view(),
                     nullptr);
    check(cudaDeviceSynchronize(), "store");
  }
  IndexKeys view() const {
    return {memory.data(), static_cast<std::size_t>(page_keys / index_unit_keys) * index_unit_bytes,
            page_keys, tables.data(), table_stride};
  }
};

struct Queries {
  std::vector<std::vector<float>> values;  // [token * 32 + head]
  std::vector<float> weights;
  DeviceArray<std::uint16_t> operand;
  DeviceArray<float> weight_memory;

  Queries(int tokens, std::mt19937& random) : operand(operand_values(tokens * index_heads, index_width)) {
    const auto rows = random_bf16(static_cast<std::size_t>(tokens) * index_heads * index_width, random);
    for (int i = 0; i < tokens * index_heads; ++i) {
      values.push_back(quantised_fp4(&rows[static_cast<std::size_t>(i) * index_width], index_width));
      weights.push_back(std::normal_distribution<float>(0.3f, 1)(random));
    }
    const DeviceArray<std::uint16_t> row_memory(rows);
    const DeviceArray<float2> rotations(no_rotation(tokens));
    quantise_index_queries(row_memory.data(), tokens, rotations.data(), operand.data(), nullptr);
    weight_memory = DeviceArray<float>(weights);
  }
  double score(int token, const std::vector<float>& key) const {
    double sum = 0;
    for (int head = 0; head < index_heads; ++head) {
      const int row = token * index_heads + head;
      sum += weights[row] * std::max(0.0, dot(values[row].data(), key.data(), index_width));
    }
    return sum;
  }
};

class CudaIndexer : public CudaTest {
 protected:
  std::mt19937 random{13};

  static void expect_score(std::uint16_t got, double expected) {
    EXPECT_LE(std::fabs(from_bf16(got) - expected), std::fabs(expected) / 250 + 1e-3);
  }
};

TEST_F(CudaIndexer, ScoresOfOneTokenASequence) {
  for (const auto& [keys, page_keys] : {std::pair{1, 64}, {130, 64}, {1000, 128}, {4100, 64}}) {
    const StoredKeys stored(3, keys, page_keys, random);
    const Queries queries(3, random);
    const int stride = (keys + 127) / 128 * 128;
    const DeviceArray<IndexRow> rows(
        std::vector<IndexRow>{{0, 0, 1, keys}, {2, 1, 1, keys}, {1, 2, 1, (keys + 1) / 2}});
    DeviceArray<std::uint16_t> scores(std::size_t{3} * stride);
    IndexInput input;
    input.queries = queries.operand.data();
    input.weights = queries.weight_memory.data();
    input.rows = rows.data();
    input.row_count = 3;
    input.max_keys = keys;
    input.keys = stored.view();
    input.score_stride = stride;
    index_scores(input, scores.data(), nullptr);
    const auto got = scores.download();
    for (int j = 0; j < keys; ++j) {
      expect_score(got[j], queries.score(0, stored.values[j]));
      expect_score(got[stride + j], queries.score(1, stored.values[2 * keys + j]));
      if (j < (keys + 1) / 2) expect_score(got[2 * stride + j], queries.score(2, stored.values[keys + j]));
    }
  }
}

TEST_F(CudaIndexer, TokensOfASequenceShareItsKeysAndGiveTheSameScoresAlone) {
  constexpr int keys = 700;
  constexpr int stride = 768;
  const StoredKeys stored(2, keys, 64, random);
  const Queries queries(9, random);
  const std::vector<int> visible{690, 691, 692, 693, 694, 695, 1, 2, 700};
  const DeviceArray<int> visible_memory(visible);
  const auto run = [&](const std::vector<IndexRow>& rows, int max_tokens,
                       std::vector<std::uint16_t>* maxima) {
    const DeviceArray<IndexRow> row_memory(rows);
    DeviceArray<std::uint16_t> scores(std::size_t{9} * stride);
    DeviceArray<std::uint16_t> block_maxima(std::size_t{9} * stride / 8);
    scores.fill(0);
    IndexInput input;
    input.queries = queries.operand.data();
    input.weights = queries.weight_memory.data();
    input.rows = row_memory.data();
    input.row_count = static_cast<int>(rows.size());
    input.max_tokens = max_tokens;
    input.max_keys = keys;
    input.keys = stored.view();
    input.score_stride = stride;
    input.block_maxima = block_maxima.data();
    input.visible = visible_memory.data();
    index_scores(input, scores.data(), nullptr);
    *maxima = block_maxima.download();
    return scores.download();
  };
  std::vector<std::uint16_t> maxima;
  std::vector<std::uint16_t> maxima_alone;
  const auto together = run({{0, 0, 6, keys}, {1, 6, 3, keys}}, 6, &maxima);
  std::vector<IndexRow> single;
  for (int token = 0; token < 9; ++token) single.push_back({token / 6, token, 1, keys});
  const auto alone = run(single, 1, &maxima_alone);
  for (int token = 0; token < 9; ++token) {
    for (int j = 0; j < keys; ++j) {
      expect_score(together[token * stride + j], queries.score(token, stored.values[token / 6 * keys + j]));
      ASSERT_EQ(together[token * stride + j], alone[token * stride + j]);
    }
    for (int block = 0; block * 8 < visible[token]; ++block) {
      float largest = -INFINITY;
      for (int j = block * 8; j < std::min(block * 8 + 8, visible[token]); ++j) {
        largest = std::max(largest, from_bf16(together[token * stride + j]));
      }
      const std::size_t at = static_cast<std::size_t>(token) * stride / 8 + block;
      ASSERT_EQ(from_bf16(maxima[at]), largest);
      ASSERT_EQ(maxima[at], maxima_alone[at]);
    }
  }
}

TEST_F(CudaIndexer, CandidatesAreScoredInTheirOrder) {
  constexpr int keys = 2048;
  const StoredKeys stored(2, keys, 128, random);
  const Queries queries(2, random);
  std::vector<int> candidates;
  for (int token = 0; token < 2; ++token) {
    std::vector<int> blocks(keys / 8);
    std::iota(blocks.begin(), blocks.end(), 0);
    std::shuffle(blocks.begin(), blocks.end(), random);
    blocks.resize(100);
    std::sort(blocks.begin(), blocks.end());
    candidates.insert(candidates.end(), blocks.begin(), blocks.end());
  }
  const DeviceArray<int> candidate_memory(candidates);
  const DeviceArray<IndexRow> rows(std::vector<IndexRow>{{0, 0, 1, 800}, {1, 1, 1, 795}});
  DeviceArray<std::uint16_t> scores(std::size_t{2} * 896);
  IndexInput input;
  input.queries = queries.operand.data();
  input.weights = queries.weight_memory.data();
  input.rows = rows.data();
  input.row_count = 2;
  input.max_keys = 800;
  input.keys = stored.view();
  input.candidates = candidate_memory.data();
  input.candidate_stride = 100;
  input.score_stride = 896;
  index_scores(input, scores.data(), nullptr);
  const auto got = scores.download();
  for (int token = 0; token < 2; ++token) {
    for (int i = 0; i < (token == 0 ? 800 : 795); ++i) {
      const int key = candidates[token * 100 + i / 8] * 8 + i % 8;
      expect_score(got[token * 896 + i], queries.score(token, stored.values[token * keys + key]));
    }
  }
}

// The k best of a row by a stable sort.
std::vector<int> best(const std::vector<std::uint16_t>& scores, int count, int k, int forced) {
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    if (a == forced || b == forced) return a == forced && b != forced;
    return from_bf16(scores[a]) > from_bf16(scores[b]);
  });
  order.resize(std::min(k, count));
  std::sort(order.begin(), order.end());
  order.resize(k, -1);
  return order;
}

TEST_F(CudaIndexer, SelectionIsExactForEverySpreadOfScores) {
  const auto normal = [&](float mean, float spread) {
    return [this, mean, spread] { return std::normal_distribution<float>(mean, spread)(random); };
  };
  const std::vector<std::function<float()>> spreads{
      normal(0, 1),
      normal(10, 0.4f),
      normal(1000, 0.01f),  // all but equal
      [] { return 0.0f; },  // all equal
      [this] {
        return random() % 100 == 0 ? 1.0f : random() % 2 != 0 ? 0.0f : -0.0f;
      },  // few values, both zeros
      [this] { return std::exp(std::normal_distribution<float>(0, 5)(random)); }};
  for (const auto& spread : spreads) {
    for (const auto& [count, k] :
         {std::pair{40000, 512}, {131072, 512}, {16384, 2048}, {513, 512}, {512, 512}, {7, 512}}) {
      const int stride = (count + 7) / 8 * 8;
      std::vector<std::uint16_t> scores(stride, to_bf16(1e30f));  // beyond the count: must not be chosen
      for (int i = 0; i < count; ++i) scores[i] = to_bf16(spread());
      const int forced = k == 2048 ? count - 1 : -1;
      const DeviceArray<std::uint16_t> memory(scores);
      const DeviceArray<int> counts(std::vector<int>{count});
      const DeviceArray<int> forced_memory(std::vector<int>{forced});
      DeviceArray<int> out(static_cast<std::size_t>(k));
      DeviceArray<int> found(std::size_t{1});
      select_largest(memory.data(), 1, stride, counts.data(), forced_memory.data(), k, out.data(),
                     found.data(), nullptr);
      EXPECT_EQ(out.download(), best(scores, count, k, forced)) << count << " scores, k = " << k;
      EXPECT_EQ(found.download()[0], std::min(count, k));
    }
  }
}

}  // namespace
}  // namespace thalweg::cuda::test
