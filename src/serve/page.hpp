// The web page at `/`: conversation and live view, one file without outside hosts (page.html).
#pragma once

#include <string_view>

namespace thalweg::serve {

/// HTML, UTF-8.
std::string_view page();

}  // namespace thalweg::serve
