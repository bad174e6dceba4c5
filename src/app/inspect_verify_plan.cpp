// `thalweg inspect verify-plan`: the confidence schedule on given estimates.
#include <fmt/format.h>

#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "app/case_reader.hpp"
#include "app/commands.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/mapped_file.hpp"
#include "engine/speculation/verify_schedule.hpp"

namespace thalweg::app {
namespace {

constexpr std::int64_t max_drafts = 64;
constexpr std::int64_t max_rows = 1 << 20;
constexpr std::int64_t max_steps = 100000;  // repeats of one update
constexpr double max_ms = 1e9;

int whole(double value, double low, double high, const std::string& subject) {
  if (value >= low && value <= high && value == static_cast<int>(value)) return static_cast<int>(value);
  throw InputError(subject, fmt::format("an integer in {}..{}", low, high), fmt::format("{}", value));
}

engine::StepCost cost_of(const CaseReader& c) {
  std::vector<engine::StepCostPoint> curve;
  for (const std::vector<double>& point : c.rows("curve", 2, 0, max_ms)) {
    curve.push_back({whole(point[0], 1, max_rows, c.subject_of("curve")), point[1]});
  }
  try {
    engine::StepCost cost(std::move(curve));
    for (const std::vector<double>& update : c.rows("updates", 5, 0, max_ms)) {
      const std::string subject = c.subject_of("updates");
      const int repeats = whole(update[4], 0, max_steps, subject);
      for (int i = 0; i < repeats; ++i) {
        cost.observe(whole(update[0], 1, max_rows, subject), whole(update[1], 1, max_rows, subject),
                     update[2], update[3]);
      }
    }
    return cost;
  } catch (const InputError& error) {
    throw InputError(c.subject(), error.what());
  }
}

engine::DraftEstimates estimates_of(const CaseReader& s) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  s.allow_only({"num_drafts", "schedule_count", "process_count", "has_draft_info", "accept_rates",
                "prev_accept_rates"});
  const auto rates = [&](std::string_view member) {
    const std::vector<double> values = s.numbers(member, 0, 1, max_drafts);
    return std::vector<float>(values.begin(), values.end());
  };
  return {.drafts = static_cast<int>(s.integer("num_drafts", 0, max_drafts)),
          .rates = rates("accept_rates"),
          .previous_rates = rates("prev_accept_rates"),
          .scheduled = s.integer("schedule_count", 0, most),
          .processed = s.integer("process_count", 0, most),
          .has_proposals = s.boolean("has_draft_info")};
}

/// A contradiction within a case is that case's answer, as in the published schedule; the others go on.
Json schedule(const CaseReader& c) {
  c.allow_only({"name", "note", "curve", "sequences", "updates", "expected"});
  const engine::StepCost cost = cost_of(c);
  std::vector<engine::DraftEstimates> sequences;
  for (const CaseReader& s : c.objects("sequences")) sequences.push_back(estimates_of(s));
  Json answer;
  try {
    const engine::VerifyPlan plan = engine::plan_verification(cost, sequences);
    answer = Json{{"error", false}, {"query_lengths", plan.rows}, {"total_query", plan.total}};
  } catch (const InputError& error) {
    answer = Json{{"error", true}, {"message", error.what()}};
  }
  const engine::StepCost::Sampler sampler = cost.sampler(static_cast<int>(sequences.size()));
  answer["forward_slope_ms"] = cost.slope();
  answer["sampler_ms"] = sampler.ms;
  answer["sampler_source"] = to_string(sampler.source);
  return answer;
}

Json allocate(const CaseReader& c) {
  c.allow_only({"name", "total_query", "remap", "previous_confidence", "expected_query_lengths"});
  const std::size_t drafts = c.first_row_width("previous_confidence");
  std::vector<float> confidences;
  for (const std::vector<double>& row : c.rows("previous_confidence", drafts, 0, 1)) {
    confidences.insert(confidences.end(), row.begin(), row.end());
  }
  std::vector<int> row_of;
  for (const std::int64_t row : c.integers("remap", -1, max_rows, max_rows))
    row_of.push_back(static_cast<int>(row));
  const auto total = static_cast<int>(c.integer("total_query", 0, max_rows));
  try {
    return engine::distribute_rows(total, static_cast<int>(drafts), row_of, confidences);
  } catch (const InputError& error) {
    throw InputError(c.subject(), error.what());
  }
}

void run(const std::string& path) {
  const Json root = parse_json(read_text_file(path), path);
  const CaseReader file(root, path);
  file.allow_only({"format", "version", "split", "notes", "schedule", "allocate"});
  Json answer{{"schedule", Json::array()}, {"allocate", Json::array()}};
  for (const CaseReader& c : file.objects("schedule")) answer["schedule"].push_back(schedule(c));
  for (const CaseReader& c : file.objects("allocate")) answer["allocate"].push_back(allocate(c));
  std::cout << to_text(answer) << std::endl;
  if (!std::cout) throw WorkError("standard output: write failed");
}

}  // namespace

void add_inspect_verify_plan(CLI::App& inspect) {
  CLI::App* command = inspect.add_subcommand(
      "verify-plan",
      "Choose how many drafts to verify: {\"schedule\": [...], \"allocate\": [...]} in, query lengths out");
  auto file = std::make_shared<std::string>();
  command->add_option("FILE", *file, "JSON file with the cases")->required();
  command->add_flag("--json")->description("Changes nothing: the output is always JSON");
  command->callback([file] { run(*file); });
}

}  // namespace thalweg::app
