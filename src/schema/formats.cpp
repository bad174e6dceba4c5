#include "schema/formats.hpp"

#include <algorithm>
#include <array>

namespace thalweg::schema {
namespace {

struct Format {
  std::string_view name;
  std::string_view pattern;
};

#define THALWEG_DATE                                                                                    \
  "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|" \
  "02-(?:0[1-9]|1[0-9]|2[0-8]))|"                                                                       \
  "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
// Leap seconds are left out.
#define THALWEG_TIME                                            \
  "(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?" \
  "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9]))"
#define THALWEG_LABEL "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define THALWEG_IPV4 \
  "(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define THALWEG_H16 "[0-9A-Fa-f]{1,4}"
#define THALWEG_LS32 "(?:" THALWEG_H16 ":" THALWEG_H16 "|" THALWEG_IPV4 ")"
#define THALWEG_POINTER "(?:/(?:[^~/]|~[01])*)*"

constexpr std::array<Format, 12> kFormats{{
    {"date", "^" THALWEG_DATE "$"},
    {"time", "^" THALWEG_TIME "$"},
    {"date-time", "^" THALWEG_DATE "[Tt]" THALWEG_TIME "$"},
    {"duration",
     "^P(?:[0-9]+W|(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
     "(?:T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))?|"
     "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S))$"},
    {"email", "^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@" THALWEG_LABEL
              "(?:\\." THALWEG_LABEL ")*$"},
    {"hostname", "^" THALWEG_LABEL "(?:\\." THALWEG_LABEL ")*$"},
    {"ipv4", "^" THALWEG_IPV4 "$"},
    {"ipv6",
     "^(?:(?:" THALWEG_H16 ":){6}" THALWEG_LS32 "|::(?:" THALWEG_H16 ":){5}" THALWEG_LS32 "|(?:" THALWEG_H16
     ")?::(?:" THALWEG_H16 ":){4}" THALWEG_LS32 "|(?:(?:" THALWEG_H16 ":){0,1}" THALWEG_H16
     ")?::(?:" THALWEG_H16 ":){3}" THALWEG_LS32 "|(?:(?:" THALWEG_H16 ":){0,2}" THALWEG_H16
     ")?::(?:" THALWEG_H16 ":){2}" THALWEG_LS32 "|(?:(?:" THALWEG_H16 ":){0,3}" THALWEG_H16 ")?::" THALWEG_H16
     ":" THALWEG_LS32 "|(?:(?:" THALWEG_H16 ":){0,4}" THALWEG_H16 ")?::" THALWEG_LS32 "|(?:(?:" THALWEG_H16
     ":){0,5}" THALWEG_H16 ")?::" THALWEG_H16 "|(?:(?:" THALWEG_H16 ":){0,6}" THALWEG_H16 ")?::)$"},
    {"uuid", "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$"},
    {"json-pointer", "^" THALWEG_POINTER "$"},
    {"relative-json-pointer", "^(?:0|[1-9][0-9]*)(?:#|" THALWEG_POINTER ")$"},
    {"uri",
     "^[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*"
     "(?:\\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"
     "(?:#(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?$"},
}};

constexpr std::array<std::string_view, 7> kOtherFormats{
    "idn-email", "idn-hostname", "iri", "iri-reference", "regex", "uri-reference", "uri-template"};

}  // namespace

std::optional<std::string_view> format_pattern(std::string_view format) {
  const auto* found = std::find_if(kFormats.begin(), kFormats.end(),
                                   [&](const Format& known) { return known.name == format; });
  return found == kFormats.end() ? std::nullopt : std::optional(found->pattern);
}

bool is_standard_format(std::string_view format) {
  return format_pattern(format) ||
         std::find(kOtherFormats.begin(), kOtherFormats.end(), format) != kOtherFormats.end();
}

}  // namespace thalweg::schema
