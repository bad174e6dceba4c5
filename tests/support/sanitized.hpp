// Whether this program was built with a sanitizer.
#pragma once

// g++ defines a macro for each, clang answers a question.
#if !defined(__has_feature)
#define __has_feature(x) 0
#endif

namespace thalweg::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) || \
    __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;  ///< everything takes about ten times as long
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace thalweg::testing
