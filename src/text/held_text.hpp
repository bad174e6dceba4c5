// Text that grows at its end and is cheap to copy.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace thalweg::text {

/// A text collected piece by piece. Full blocks are shared between copies and never change, so a copy costs
/// at most one small block whatever the length, and copies may be used by different threads.
class HeldText {
 public:
  void append(std::string_view text);
  void clear();
  bool empty() const { return tail_.empty() && !blocks_; }

  /// The whole text; time is linear in its length.
  std::string str() const;

 private:
  static constexpr std::size_t kBlockBytes = 1024;

  /// A full block; the blocks form a list from the last to the first. Equal neighbours are merged, as digits
  /// of a binary counter are, so the list is short and a byte is moved O(log n) times.
  struct Block {
    std::string text;
    std::shared_ptr<const Block> before;
    std::size_t end;  ///< bytes up to and including this block
  };

  void seal_tail();

  std::shared_ptr<const Block> blocks_;
  std::string tail_;
};

}  // namespace thalweg::text
