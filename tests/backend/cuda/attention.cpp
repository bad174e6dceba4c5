#include "backend/cuda/attention.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "numeric/block_formats.hpp"
#include "reference.hpp"

namespace thalweg::cuda::test {
namespace {

constexpr int heads = 64;
constexpr int ring_rows = 134;
constexpr int page_rows = 64;

using numeric::RowFormat;

// `count` cache rows of random keys: codes and scales as stored, and what they mean.
struct KeyRows {
  std::vector<std::uint8_t> bytes;
  std::vector<std::vector<float>> values;

  KeyRows(RowFormat format, int count, std::mt19937& random) {
    const std::size_t size = numeric::row_bytes(format, head_width);
    bytes.resize(size * count);
    values.assign(count, std::vector<float>(head_width));
    std::normal_distribution<float> normal;
    for (int i = 0; i < count; ++i) {
      const float spread = std::exp(normal(random));
      for (float& value : values[i]) value = spread * normal(random);
      std::uint8_t* codes = bytes.data() + i * size;
      std::uint8_t* scales = codes + numeric::code_bytes(format, head_width);
      numeric::pack_row(format, values[i], codes, scales);
      numeric::unpack_row(format, codes, scales, values[i]);
    }
  }
};

// Two sequences, with windows and pages in shuffled places.
class CudaAttention : public CudaTest {
 protected:
  static constexpr int sequences = 2;
  static constexpr int entries = 640;
  std::mt19937 random{3};
  KeyRows window{RowFormat::fp8_32, sequences* ring_rows, random};
  KeyRows compressed{RowFormat::nvfp4_16, sequences* entries, random};
  std::vector<int> table;
  std::vector<float> sinks = std::vector<float>(heads);

  CudaAttention() {
    table.resize(sequences * entries / page_rows);
    std::iota(table.begin(), table.end(), 0);
    std::shuffle(table.begin(), table.end(), random);
    for (float& sink : sinks) sink = std::normal_distribution<float>(0, 2)(random);
  }

  AttentionRow row(int sequence, int first, int count, int selected) const {
    return {sequence, sequence, first, count, selected};
  }

  std::vector<int> random_selection(int count) {
    std::vector<int> all(entries);
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), random);
    all.resize(count);
    std::sort(all.begin(), all.end());
    all.resize(512, -1);
    return all;
  }

  std::vector<std::uint16_t> random_q(std::size_t rows) {
    std::normal_distribution<float> normal(0, 0.5f);
    std::vector<std::uint16_t> q(rows * heads * head_width);
    for (auto& value : q) value = to_bf16(normal(random));
    return q;
  }

  // Output [row][head * 512 + channel].
  std::vector<std::vector<float>> run(const std::vector<AttentionRow>& rows,
                                      const std::vector<std::uint16_t>& q, const std::vector<int>& selection,
                                      const std::vector<float2>& rotations) {
    const int count = static_cast<int>(rows.size());
    const DeviceArray<std::uint16_t> q_memory(q);
    const DeviceArray<AttentionRow> row_memory(rows);
    const DeviceArray<std::uint8_t> window_memory(window.bytes);
    const DeviceArray<std::uint8_t> compressed_memory(compressed.bytes);
    const DeviceArray<int> table_memory(table);
    const DeviceArray<int> selection_memory(selection.empty() ? std::vector<int>{0} : selection);
    const DeviceArray<float> sink_memory(sinks);
    const DeviceArray<float2> rotation_memory(rotations);
    const std::size_t group_values = operand_values(count, 4096);
    DeviceArray<std::uint16_t> out(8 * group_values);
    out.fill(0xFF);
    AttentionInput input;
    input.q = q_memory.data();
    input.rows = row_memory.data();
    input.row_count = count;
    input.window = {window_memory.data(), std::size_t{ring_rows} * window_row_bytes, ring_rows};
    input.compressed = {compressed_memory.data(), std::size_t{page_rows} * compressed_row_bytes, page_rows,
                        table_memory.data(), entries / page_rows};
    input.selection = selection.empty() ? nullptr : selection_memory.data();
    input.sinks = sink_memory.data();
    input.rotations = rotation_memory.data();
    sparse_attention(input, {out.data(), count, 4096}, nullptr);
    const auto host = out.download();
    std::vector<std::vector<float>> result(count, std::vector<float>(heads * head_width));
    for (int i = 0; i < count; ++i) {
      for (int j = 0; j < heads * head_width; ++j) {
        result[i][j] =
            from_bf16(host[j / 4096 * group_values + operand_index(i, j % 4096, atom_count(count))]);
      }
    }
    return result;
  }

  // One head in the words of the model specification (3.4), before the rotation back.
  std::vector<double> head_output(const AttentionRow& row, const int* selected, const std::uint16_t* q,
                                  float sink) const {
    std::vector<const float*> keys;
    for (int i = 0; i < row.window_count; ++i) {
      keys.push_back(window.values[row.slot * ring_rows + (row.window_first + i) % ring_rows].data());
    }
    for (int i = 0; i < row.selected; ++i) {
      const int page = table[row.sequence * (entries / page_rows) + selected[i] / page_rows];
      keys.push_back(compressed.values[page * page_rows + selected[i] % page_rows].data());
    }
    std::vector<float> query(head_width);
    for (int i = 0; i < head_width; ++i) query[i] = from_bf16(q[i]);
    std::vector<double> scores;
    for (const float* key : keys) scores.push_back(dot(query.data(), key, head_width) / std::sqrt(512.0));
    const double largest = *std::max_element(scores.begin(), scores.end());
    double total = std::exp(sink - largest);
    std::vector<double> out(head_width, 0.0);
    for (std::size_t k = 0; k < keys.size(); ++k) {
      const double weight = std::exp(scores[k] - largest);
      total += weight;
      for (int i = 0; i < head_width; ++i) out[i] += weight * keys[k][i];
    }
    for (double& value : out) value /= total;
    return out;
  }

  std::vector<float2> random_rotations(std::size_t rows) {
    std::vector<float2> rotations(rows * 32);
    for (auto& rotation : rotations) {
      const float angle = std::uniform_real_distribution<float>(-3, 3)(random);
      rotation = {std::cos(angle), std::sin(angle)};
    }
    return rotations;
  }

  void expect_model(const std::vector<AttentionRow>& rows, const std::vector<std::uint16_t>& q,
                    const std::vector<int>& selection, const std::vector<float2>& rotations,
                    const std::vector<std::vector<float>>& got) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      double difference = 0;
      double size = 0;
      for (int head = 0; head < heads; head += 3) {
        auto expected = head_output(rows[i], selection.empty() ? nullptr : &selection[i * 512],
                                    &q[(i * heads + head) * head_width], sinks[head]);
        for (int pair = 0; pair < 32; ++pair) {
          const float2 rotation = rotations[i * 32 + pair];
          const double u = expected[448 + 2 * pair];
          const double v = expected[449 + 2 * pair];
          expected[448 + 2 * pair] = u * rotation.x + v * rotation.y;
          expected[449 + 2 * pair] = v * rotation.x - u * rotation.y;
        }
        for (int channel = 0; channel < head_width; ++channel) {
          const double error = got[i][head * head_width + channel] - expected[channel];
          difference += error * error;
          size += expected[channel] * expected[channel];
        }
      }
      EXPECT_LT(std::sqrt(difference / size), 4e-3)
          << "row " << i << ", window " << rows[i].window_count << ", selected " << rows[i].selected;
    }
  }
};

TEST_F(CudaAttention, WindowAndSelectionFollowTheModel) {
  std::vector<AttentionRow> rows;
  std::vector<int> selection;
  for (const int selected : {0, 1, 63, 64, 191, 192, 193, 400, 512}) {
    rows.push_back(row(selected % 2, 100 + selected, selected == 400 ? 1 : 128 - selected % 7, selected));
    const auto chosen = random_selection(selected);
    selection.insert(selection.end(), chosen.begin(), chosen.end());
  }
  const auto q = random_q(rows.size());
  const auto rotations = random_rotations(rows.size());
  expect_model(rows, q, selection, rotations, run(rows, q, selection, rotations));
}

TEST_F(CudaAttention, WindowOnlyLayersReadNoPages) {
  const std::vector<AttentionRow> rows{row(0, 0, 1, 0), row(1, 5, 64, 0), row(0, 130, 128, 0),
                                       row(1, 77, 133, 0)};
  const auto q = random_q(rows.size());
  const auto rotations = random_rotations(rows.size());
  expect_model(rows, q, {}, rotations, run(rows, q, {}, rotations));
}

TEST_F(CudaAttention, ARowDoesNotDependOnItsBatch) {
  std::vector<AttentionRow> rows;
  std::vector<int> selection;
  for (int i = 0; i < 40; ++i) {
    rows.push_back(row(i % 2, i, 128, 512 - i));
    const auto chosen = random_selection(512 - i);
    selection.insert(selection.end(), chosen.begin(), chosen.end());
  }
  const auto q = random_q(rows.size());
  const auto rotations = random_rotations(rows.size());
  const auto all = run(rows, q, selection, rotations);
  for (const int i : {0, 17, 39}) {
    const auto alone =
        run({rows[i]}, {q.begin() + i * heads * head_width, q.begin() + (i + 1) * heads * head_width},
            {selection.begin() + i * 512, selection.begin() + (i + 1) * 512},
            {rotations.begin() + i * 32, rotations.begin() + (i + 1) * 32});
    EXPECT_EQ(alone[0], all[i]);
  }
}

}  // namespace
}  // namespace thalweg::cuda::test
