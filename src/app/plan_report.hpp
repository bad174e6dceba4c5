// What `thalweg plan` works out and how it is shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "model/memory_plan.hpp"

namespace thalweg::app {

/// Sequences of a given length that run at once.
struct Capacity {
  std::int64_t context = 0;
  std::int64_t sequences = 0;
};

/// One device set: the account of the load judged, and how much else would fit.
struct SetReport {
  std::string name;  ///< "4 GPUs of 141.0 GB, Engram tables in host memory"
  model::DeviceSet devices;
  model::Load load;
  model::MemoryPlan plan;
  std::vector<Capacity> capacities;
};

struct PlanReport {
  std::string model;  ///< the configuration file
  std::vector<SetReport> sets;

  bool any_fits() const;
};

/// "141.0 GB", "3.1 MB", "890 B": three or more significant digits, powers of 1000.
std::string bytes_text(std::int64_t bytes);

/// Why a set does not fit: sum, what there is, and the largest term, on one line.
std::string refusal_text(const SetReport& set);

Json to_json(const PlanReport& report, const model::MemoryPlanner& planner);
std::string to_table(const PlanReport& report, const model::MemoryPlanner& planner);

}  // namespace thalweg::app
