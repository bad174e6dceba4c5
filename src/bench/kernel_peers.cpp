// Figures of public kernels on one H200, measured with the method of this bench (docs/kernels.md names them).
#include <array>
#include <string_view>

#include "bench/kernel_bench.hpp"

namespace thalweg::bench {
namespace {

struct DenseRow {
  std::string_view op;
  std::array<double, 8> any;  // M = 1, 16, 64, 128, 384, 768, 2048, 8192
  std::array<double, 8> exact;
};

constexpr std::array<int, 8> dense_sizes{1, 16, 64, 128, 384, 768, 2048, 8192};
constexpr DenseRow dense_rows[] = {
    {"q_a+kv", {6.5, 6.9, 7.1, 7.4, 10.2, 14.1, 25.9, 107}, {8.8, 9.9, 9.2, 10.2, 14.4, 21.8, 51.0, 208}},
    {"q_b", {13.0, 13.4, 14.5, 16.0, 29.6, 57.1, 142, 569}, {18.4, 19.4, 20.0, 24.0, 49.9, 95.2, 253, 1003}},
    {"wv_grouped",
     {15.9, 14.4, 14.1, 14.7, 29.3, 46.4, 115, 460},
     {19.2, 19.5, 20.5, 22.2, 38.2, 72.0, 197, 810}},
    {"o", {13.7, 13.6, 14.1, 14.7, 24.6, 47.6, 113, 491}, {17.8, 18.4, 22.8, 25.6, 46.7, 87.7, 219, 953}},
    {"shared_w13",
     {9.4, 9.1, 9.3, 9.5, 15.7, 26.1, 67.9, 265},
     {13.1, 13.5, 16.9, 16.6, 27.6, 54.1, 130, 539}},
    {"shared_w2", {6.6, 6.4, 6.5, 6.3, 9.9, 15.8, 35.7, 145}, {8.9, 11.0, 8.8, 9.0, 15.2, 26.7, 65.8, 263}},
    {"engram_wkv",
     {41.7, 42.6, 42.9, 43.5, 90.8, 193, 444, 1848},
     {47.1, 47.6, 61.6, 74.3, 179, 353, 871, 3648}},
    {"gate", {7.4, 0, 0, 8.2, 8.8, 11.1, 0, 0}, {}},
    {"lm_head", {305, 0, 358, 344, 707, 1479, 0, 0}, {}},
};

struct ExpertRow {
  std::string_view setting;  // both products together
  double any;                // FP4 x FP8 with one scale a token
  double exact;
};

constexpr ExpertRow expert_rows[] = {
    {"ep8_T64", 235, 355},       {"ep8_T128", 247, 332},          {"ep8_T256", 311, 430},
    {"ep8_T384", 325, 499},      {"ep8_T768", 416, 894},          {"ep64_T64", 72.7, 99.8},
    {"ep64_T128", 83.3, 141},    {"ep64_T384", 163, 328},         {"ep64_T768", 286, 540},
    {"all384_T64", 1167, 1377},  {"all384_T128", 1498, 2107},     {"all384_T256", 1726, 2430},
    {"all384_T384", 1867, 2760}, {"prefill8192_ep8", 2669, 4912},
};

struct SizedRow {
  std::string_view op;
  std::array<double, 6> any;  // M = 64, 128, 384, 768, 4096, 8192
};

constexpr std::array<int, 6> sized_sizes{64, 128, 384, 768, 4096, 8192};
constexpr SizedRow sized_rows[] = {
    {"mega_mhc", {4.6, 4.6, 7.6, 14.6, 59, 85}},  // the mixing product alone
    {"router", {5.1, 4.9, 4.9, 5.4, 0, 17.6}},
    {"sort", {4.6, 4.5, 5.2, 6.1, 0, 24.2}},
    {"combine", {2.2, 2.5, 4.4, 14.6, 0, 135}},
};

struct NamedFigure {
  std::string_view op;
  double any;  // attention: FP8 cache; index: one call of at most two tokens a sequence
};

constexpr NamedFigure named_figures[] = {
    {"decode_B64_q1", 44.9},
    {"decode_swa_only_B64_q1", 12.7},
    {"decode_B128_q1", 45.5},
    {"decode_swa_only_B128_q1", 13.6},
    {"decode_B256_q1", 86.8},
    {"decode_swa_only_B256_q1", 25.5},
    {"decode_B64_q4", 86.4},
    {"decode_B64_q6", 127},
    {"decode_swa_only_B64_q6", 37.7},
    {"decode_B128_q6", 250},
    {"decode_swa_only_B128_q6", 83.5},
    {"decode_B256_q6", 497},
    {"decode_swa_only_B256_q6", 165},
    {"prefill_S4096_k640", 779},
    {"paged_ratio1_B64_q1", 275},
    {"paged_ratio2_B64_q1", 140},
    {"paged_candidates_B64_q1", 38.2},
    {"paged_ratio1_B64_q2", 280},
    {"paged_ratio2_B64_q2", 143},
    {"paged_candidates_B64_q2", 39.4},
    {"paged_ratio1_B64_q6", 840},
    {"paged_ratio2_B64_q6", 429},
    {"paged_ratio1_B128_q1", 543},
    {"paged_ratio2_B128_q1", 275},
    {"paged_candidates_B128_q1", 72.2},
    {"paged_ratio1_B128_q2", 551},
    {"paged_ratio2_B128_q2", 279},
    {"paged_candidates_B128_q2", 74.0},
    {"paged_ratio1_B128_q6", 1653},
    {"paged_ratio2_B128_q6", 837},
    {"k512_n131072_B64", 29.4},
    {"k512_n65536_B64", 16.4},
    {"k512_n16384_B64", 6.8},
    {"k512_n131072_B128", 31.0},
    {"k512_n65536_B128", 27.6},
    {"k512_n16384_B128", 7.3},
    {"k512_n131072_B384", 86.6},
    {"k512_n65536_B384", 80.1},
    {"k512_n16384_B384", 22.6},
    {"k512_n131072_B768", 170},
    {"k512_n65536_B768", 157},
    {"k512_n16384_B768", 42.0},
};

}  // namespace

PeerFigures peer_figures(const KernelCase& kernel_case) {
  if (kernel_case.section == "dense") {
    for (const DenseRow& row : dense_rows) {
      for (std::size_t i = 0; row.op == kernel_case.op && i < dense_sizes.size(); ++i) {
        if (dense_sizes[i] == kernel_case.size) return {row.any[i], row.exact[i]};
      }
    }
  }
  if (kernel_case.section == "moe") {
    // w13 reads two thirds of the weights and does two thirds of the work.
    const std::string_view op = kernel_case.op;
    const double share = op.starts_with("w13:") ? 2.0 / 3 : 1.0 / 3;
    for (const ExpertRow& row : expert_rows) {
      if (op.substr(op.find(':') + 1) == row.setting) return {row.any * share, row.exact * share};
    }
  }
  for (const SizedRow& row : sized_rows) {
    for (std::size_t i = 0; row.op == kernel_case.op && i < sized_sizes.size(); ++i) {
      if (sized_sizes[i] == kernel_case.size) return {row.any[i], 0};
    }
  }
  for (const NamedFigure& figure : named_figures) {
    if (figure.op == kernel_case.op) return {figure.any, 0};
  }
  return {};
}

}  // namespace thalweg::bench
