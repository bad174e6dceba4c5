// Where values are rounded. A property of a whole engine, never mixed within one.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "model/cache_layout.hpp"

namespace thalweg::model {

enum class Precision {
  reference,  ///< small cache formats, and inputs of FP8/FP4 linears rounded to E4M3 in groups of 32; float32
              ///< between
  cache,      ///< float32 compute; only what is stored in caches is rounded
  float32,    ///< float32 compute, nothing rounded
};

/// The name on the command line: "reference", "cache", "float".
inline const char* precision_name(Precision precision) {
  switch (precision) {
    case Precision::reference:
      return "reference";
    case Precision::cache:
      return "cache";
    case Precision::float32:
      return "float";
  }
  return "";
}

/// Inverse of `precision_name`. Throws UsageError.
inline Precision parse_precision(std::string_view name) {
  for (const Precision precision : {Precision::reference, Precision::cache, Precision::float32}) {
    if (name == precision_name(precision)) return precision;
  }
  throw UsageError("--precision: expected reference, cache or float, found " + std::string(name));
}

inline CacheFormats cache_formats(Precision precision) {
  using numeric::RowFormat;
  if (precision == Precision::float32) return {RowFormat::f32, RowFormat::f32, RowFormat::f32};
  return {};
}

}  // namespace thalweg::model
