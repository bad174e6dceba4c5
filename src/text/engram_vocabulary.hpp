// The vocabulary compression of Engram: tokens that differ only in case, accents or blanks share one id.
#pragma once

#include <cstdint>
#include <vector>

#include "text/tokenizer.hpp"

namespace thalweg::text {

/// Compressed id of every id in [0, vocab_size()), numbered from 0 in order of first appearance.
///
/// Two ids share a class if the texts they decode to alone agree after NFKC, NFD, removal of combining marks,
/// lower-casing, collapsing of blank runs and trimming. A token that is not UTF-8 by itself is its own class,
/// by spelling. 99,092 classes for the released tokenizer. Source: Engram's tokenizer compression, as
/// released with the model.
std::vector<std::int32_t> engram_vocabulary(const Tokenizer& tokenizer);

}  // namespace thalweg::text
