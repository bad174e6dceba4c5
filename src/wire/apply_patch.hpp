// The patch tool, which clients name and the model knows by this wording.
#pragma once

#include "text/conversation.hpp"

namespace thalweg::wire {

/// A function with one string parameter `input`. Description from DeepSeek's MIT-licensed release.
text::Tool apply_patch_tool();

}  // namespace thalweg::wire
