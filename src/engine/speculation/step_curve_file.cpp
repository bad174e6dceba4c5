#include "engine/speculation/step_curve_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <system_error>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/mapped_file.hpp"

namespace thalweg::engine {
namespace {

constexpr const char* kFormat = "thalweg step costs 1";

// A value as errors show it.
std::string shown(const Json& value) {
  std::string text = thalweg::to_text(value);
  if (text.size() > 40) text = text.substr(0, 40) + "...";
  return text;
}

std::vector<StepCostPoint> parse_curve(const Json& points, const std::string& subject) {
  if (!points.is_array() || points.empty()) throw InputError(subject, "a list of [rows, ms]", shown(points));
  std::vector<StepCostPoint> curve;
  for (const Json& point : points) {
    const std::string at = fmt::format("{}[{}]", subject, curve.size());
    const bool pair =
        point.is_array() && point.size() == 2 && point[0].is_number_integer() && point[1].is_number();
    if (!pair) throw InputError(at, "[rows, ms]", shown(point));
    const int above = curve.empty() ? 0 : curve.back().rows;
    const auto rows = point[0].get<std::int64_t>();
    if (rows <= above || rows > 1 << 24) {
      throw InputError(at, fmt::format("rows from {} to {}", above + 1, 1 << 24), shown(point[0]));
    }
    const auto ms = point[1].get<double>();
    if (!std::isfinite(ms) || ms <= 0) throw InputError(at, "milliseconds above 0", shown(point[1]));
    curve.push_back({static_cast<int>(rows), ms});
  }
  return curve;
}

void write_whole(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path temporary = fmt::format("{}.{}.tmp", file.string(), getpid());
  std::ofstream out(temporary, std::ios::binary);
  out << text;
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(temporary, file, error);
  if (!out || error) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw WorkError(fmt::format("{}: cannot be written", file.string()));
  }
}

}  // namespace

StepCurves parse_step_curves(std::string_view text, const std::string& subject) {
  const Json json = parse_json(text, subject, {.depth = 8, .unique_keys = true});
  if (!json.is_object() || json.value("format", Json()) != kFormat) {
    throw InputError(subject + ": format", kFormat,
                     json.is_object() ? shown(json.value("format", Json())) : shown(json));
  }
  for (const auto& [name, value] : json.items()) {
    if (name != "format" && name != "curves") throw InputError(subject, "format and curves", name);
  }
  if (!json.contains("curves") || !json["curves"].is_object()) {
    throw InputError(subject + ": curves", "an object", shown(json.value("curves", Json())));
  }
  StepCurves curves;
  for (const auto& [key, points] : json["curves"].items()) {
    curves[key] = parse_curve(points, fmt::format("{}: curves[\"{}\"]", subject, key));
  }
  return curves;
}

std::string to_text(const StepCurves& curves) {
  Json members = Json::object();
  for (const auto& [key, curve] : curves) {
    Json points = Json::array();
    for (const StepCostPoint& point : curve) points.push_back({point.rows, point.ms});
    members[key] = points;
  }
  return thalweg::to_text(Json{{"format", kFormat}, {"curves", members}}) + "\n";
}

std::vector<StepCostPoint> stored_curve(const std::filesystem::path& file, const std::string& key,
                                        const std::function<std::vector<StepCostPoint>()>& measure) {
  StepCurves curves;
  if (std::filesystem::exists(file)) curves = parse_step_curves(read_text_file(file.string()), file.string());
  const auto known = curves.find(key);
  if (known != curves.end()) return known->second;
  curves[key] = measure();
  write_whole(file, to_text(curves));
  return curves[key];
}

}  // namespace thalweg::engine
