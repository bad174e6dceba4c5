#include "cache/id_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "cache/block_table.hpp"

namespace thalweg::cache {
namespace {

TEST(IdPool, NeverHandsOutIdZeroAndEndsWithNil) {
  IdPool pool(4);
  std::set<std::uint32_t> ids;
  for (int i = 0; i < 3; ++i) ids.insert(pool.allocate());
  EXPECT_EQ(ids, (std::set<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(pool.allocate(), kNil);
  pool.check_invariants();
}

TEST(IdPool, RefusesDoubleReleaseAndRetainingAFreeId) {
  IdPool pool(3);
  const std::uint32_t id = pool.allocate();
  EXPECT_TRUE(pool.release(id));
  EXPECT_THROW(pool.release(id), BrokenInvariant);
  EXPECT_THROW(pool.retain(id), BrokenInvariant);
  EXPECT_THROW(pool.retain(kNil), BrokenInvariant);
  EXPECT_THROW(pool.release(3), BrokenInvariant);
  EXPECT_THROW(IdPool(1), BrokenInvariant);
  pool.check_invariants();
}

TEST(IdPool, ReusesTheLongestUnusedIdFirst) {
  IdPool pool(4);
  for (int i = 0; i < 3; ++i) pool.allocate();
  pool.release(2);
  pool.release(3);
  pool.release(1);
  EXPECT_EQ(pool.allocate(), 2U);
  EXPECT_EQ(pool.allocate(), 3U);
  EXPECT_EQ(pool.allocate(), 1U);
}

TEST(IdPool, AnyOrderOfReleasesRestoresThePool) {
  std::mt19937_64 random(1);
  IdPool pool(65);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint32_t> held;
    while (const std::uint32_t id = pool.allocate()) held.push_back(id);
    EXPECT_EQ(held.size(), 64U);
    for (int i = 0; i < 32; ++i) {
      held.push_back(held[random() % 64]);
      pool.retain(held.back());
    }
    std::ranges::shuffle(held, random);
    for (const std::uint32_t id : held) pool.release(id);
    EXPECT_EQ(pool.free_count(), 64U);
    pool.check_invariants();
  }
}

TEST(IdPool, KeepsEveryIdFreeXorCountedThroughRandomSteps) {
  std::mt19937_64 random(2);
  IdPool pool(33);
  std::vector<std::uint32_t> references(33);
  for (int step = 0; step < 100'000; ++step) {
    const std::uint32_t id = 1 + static_cast<std::uint32_t>(random() % 32);
    switch (random() % 3) {
      case 0:
        if (const std::uint32_t fresh = pool.allocate(); fresh != kNil) {
          ASSERT_EQ(references[fresh], 0U);
          references[fresh] = 1;
        } else {
          ASSERT_EQ(std::ranges::count(references.begin() + 1, references.end(), 0U), 0);
        }
        break;
      case 1:
        if (references[id] > 0) {
          pool.retain(id);
          ++references[id];
        }
        break;
      default:
        if (references[id] > 0) {
          ASSERT_EQ(pool.release(id), --references[id] == 0);
        }
    }
    ASSERT_EQ(pool.references(id), references[id]);
    if (step % 64 == 0) pool.check_invariants();
  }
}

TEST(BlockTable, GivesItsBlocksBackLastFirst) {
  IdPool pool(5);
  {
    BlockTable table(pool);
    for (int i = 0; i < 4; ++i) table.append_owned(pool.allocate());
    table.truncate(3);
    EXPECT_EQ(pool.free_count(), 1U);
  }
  EXPECT_EQ(pool.free_count(), 4U);
  EXPECT_EQ(pool.allocate(), 4U);
  EXPECT_EQ(pool.allocate(), 3U) << "the first block of a table is the last to be reused";
}

TEST(BlockTable, SharingCountsAndReplacingGivesBack) {
  IdPool pool(5);
  BlockTable parent(pool);
  BlockTable child(pool);
  parent.append_owned(pool.allocate());
  child.share_all(parent);
  EXPECT_FALSE(parent.exclusive(0));
  child.replace(0, pool.allocate());
  EXPECT_TRUE(parent.exclusive(0));
  EXPECT_TRUE(child.exclusive(0));
  EXPECT_THROW(child.share_all(parent), BrokenInvariant);
}

}  // namespace
}  // namespace thalweg::cache
