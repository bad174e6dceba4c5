#include "app/plan_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/cache_layout.hpp"

namespace thalweg::app {
namespace {

using model::MemoryAccount;
using model::MemoryPlanner;
using model::MemoryTerm;
using model::WeightPart;

// 510286023000 as "510,286,023,000".
std::string grouped(std::int64_t number) {
  std::string digits = fmt::format("{}", number);
  for (std::size_t i = digits.size(); i > 3; i -= 3)
    digits.insert(digits.begin() + static_cast<std::ptrdiff_t>(i - 3), ',');
  return digits;
}

WeightPart sum_of(const std::vector<WeightPart>& parts) {
  WeightPart sum{.name = "all"};
  for (const WeightPart& part : parts) {
    sum.tensors += part.tensors;
    sum.parameters += part.parameters;
    sum.bytes += part.bytes;
  }
  return sum;
}

const char* placement_name(model::Placement placement) {
  switch (placement) {
    case model::Placement::everywhere:
      return "everywhere";
    case model::Placement::spread:
      return "spread";
    case model::Placement::table:
      return "table";
  }
  return "";
}

Json to_json(const WeightPart& part) {
  return {{"name", part.name},
          {"placement", placement_name(part.placement)},
          {"tensors", part.tensors},
          {"parameters", part.parameters},
          {"bytes", part.bytes}};
}

Json to_json(const MemoryAccount& account) {
  Json terms = Json::array();
  for (const MemoryTerm& term : account.terms) terms.push_back({{"name", term.name}, {"bytes", term.bytes}});
  return {{"terms", std::move(terms)},
          {"sum", account.sum()},
          {"available", account.available ? Json(*account.available) : Json(nullptr)},
          {"largest", account.largest().name},
          {"fits", account.fits()}};
}

Json to_json(const SetReport& set) {
  Json capacities = Json::array();
  for (const Capacity& capacity : set.capacities) {
    capacities.push_back({{"context", capacity.context}, {"sequences", capacity.sequences}});
  }
  return {{"name", set.name},
          {"gpus", set.devices.gpus},
          {"engram", set.devices.gpus > 0 && set.devices.engram_on_device ? "device" : "host"},
          {"context", set.load.context},
          {"sequences", set.load.sequences},
          {"batch_tokens", set.load.batch_tokens},
          {"fits", set.plan.fits()},
          {set.devices.gpus > 0 ? "gpu" : "host", to_json(set.plan.device)},
          {"host_beside_gpus", set.plan.host ? to_json(*set.plan.host) : Json(nullptr)},
          {"capacity", std::move(capacities)}};
}

Json cache_json(const checkpoint::ModelConfig& config) {
  const model::PageLayout page = model::page_layout(config);
  const model::SlotLayout slot = model::slot_layout(config, model::default_backtracking(config));
  return {{"global_bytes_per_token", model::global_bytes_per_token(config)},
          {"page_tokens", page.tokens},
          {"page_bytes", page.stride},
          {"stored_bytes_per_token", static_cast<double>(page.stride) / page.tokens},
          {"backtracking", slot.backtracking},
          {"state_slot_bytes", slot.stride}};
}

std::string parts_table(const MemoryPlanner& planner) {
  std::string text =
      fmt::format("{:<24}{:>9}{:>18}{:>18}{:>11}\n", "part", "tensors", "parameters", "bytes", "");
  const auto row = [&](const WeightPart& part) {
    if (part.tensors == 0) return;
    text += fmt::format("{:<24}{:>9}{:>18}{:>18}{:>11}\n", part.name, grouped(part.tensors),
                        grouped(part.parameters), grouped(part.bytes), bytes_text(part.bytes));
  };
  for (const WeightPart& part : planner.parts()) row(part);
  row(sum_of(planner.parts()));
  return text;
}

std::string cache_table(const checkpoint::ModelConfig& config) {
  const model::PageLayout page = model::page_layout(config);
  const model::SlotLayout slot = model::slot_layout(config, model::default_backtracking(config));
  return fmt::format(
      "cache, a token          {:g} bytes of global rows ({:g} stored, in pages of {} tokens: {} bytes)\n"
      "cache, a sequence       {} bytes of state slot (windows of {} tokens and {} to take back)\n",
      model::global_bytes_per_token(config), static_cast<double>(page.stride) / page.tokens, page.tokens,
      grouped(page.stride), grouped(slot.stride), config.sliding_window, slot.backtracking);
}

std::string account_table(const char* title, const MemoryAccount& account) {
  std::string text;
  for (const MemoryTerm& term : account.terms)
    text += fmt::format("  {:<28}{:>11}\n", term.name, bytes_text(term.bytes));
  const std::string available = account.available ? " of " + bytes_text(*account.available) : "";
  return text + fmt::format("  {:<28}{:>11}{}\n", title, bytes_text(account.sum()), available);
}

std::string set_table(const SetReport& set) {
  std::string text = fmt::format("{}\n  {} sequences of {} tokens, {} rows a step{}\n", set.name,
                                 grouped(set.load.sequences), grouped(set.load.context),
                                 grouped(set.load.batch_tokens), set.devices.gpus > 1 ? " and GPU" : "");
  text += account_table(set.devices.gpus > 0 ? "each GPU, sum" : "host, sum", set.plan.device);
  if (set.plan.host) text += account_table("host beside the GPUs, sum", *set.plan.host);
  text += set.plan.fits() ? "  fits\n" : fmt::format("  does not fit: {}\n", refusal_text(set));
  for (const Capacity& capacity : set.capacities) {
    text += fmt::format("  most at {:>9} tokens: {:>9} sequences\n", grouped(capacity.context),
                        grouped(capacity.sequences));
  }
  return text;
}

}  // namespace

bool PlanReport::any_fits() const {
  return std::ranges::any_of(sets, [](const SetReport& set) { return set.plan.fits(); });
}

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array<const char*, 7> kUnits = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.95 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string refusal_text(const SetReport& set) {
  const MemoryAccount& account = set.plan.tightest();
  const bool gpu = set.devices.gpus > 0 && &account == &set.plan.device;
  return fmt::format("needs {} {}, which has {}; largest term: {}, {}", bytes_text(account.sum()),
                     gpu ? "on each GPU" : "on the host", bytes_text(account.available.value_or(0)),
                     account.largest().name, bytes_text(account.largest().bytes));
}

Json to_json(const PlanReport& report, const MemoryPlanner& planner) {
  Json parts = Json::array();
  for (const WeightPart& part : planner.parts()) parts.push_back(to_json(part));
  Json sets = Json::array();
  for (const SetReport& set : report.sets) sets.push_back(to_json(set));
  const WeightPart sum = sum_of(planner.parts());
  return {{"model", report.model},
          {"totals", {{"tensors", sum.tensors}, {"parameters", sum.parameters}, {"bytes", sum.bytes}}},
          {"parts", std::move(parts)},
          {"cache", cache_json(planner.config())},
          {"devices", std::move(sets)}};
}

std::string to_table(const PlanReport& report, const MemoryPlanner& planner) {
  std::string text =
      fmt::format("{}\n\n{}\n{}", report.model, parts_table(planner), cache_table(planner.config()));
  for (const SetReport& set : report.sets) text += fmt::format("\n{}", set_table(set));
  return text;
}

}  // namespace thalweg::app
