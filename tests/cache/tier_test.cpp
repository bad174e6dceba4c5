#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cache/disk_tier.hpp"
#include "cache/host_tier.hpp"
#include "simulated.hpp"

namespace thalweg::cache {
namespace {

namespace fs = std::filesystem;
using simulated::TemporaryFolder;

constexpr Key128 kSpace{21, 22};
constexpr std::size_t kPayload = 1000;
const std::size_t kRecordBytes = encoded_bytes(1, 0, kPayload);

ChainKey name_of(std::uint64_t number) {
  return {xxh3_128(std::as_bytes(std::span(&number, 1)), 5),
          xxh3_128(std::as_bytes(std::span(&number, 1)), 6)};
}

RecordPtr record(std::uint64_t number) {
  auto made = std::make_shared<Record>();
  made->tokens = {static_cast<TokenId>(number)};
  made->payload.assign(kPayload, static_cast<std::byte>(number));
  made->info = {.kind = RecordKind::snapshot,
                .name = name_of(number),
                .parent = name_of(number / 10).key,
                .token_count = 1,
                .bytes = kRecordBytes};
  return made;
}

bool holds(Tier& tier, std::uint64_t number) {
  const RecordPtr found = tier.get(name_of(number));
  return found != nullptr && found->payload == record(number)->payload &&
         found->tokens == record(number)->tokens;
}

void ignore_report(const std::string&) {}

std::unique_ptr<DiskTier> open_disk(const TemporaryFolder& folder, std::size_t budget = std::size_t{1} << 20,
                                    DiskTier::Report report = ignore_report) {
  return std::make_unique<DiskTier>(folder.path(), kSpace, budget, std::move(report));
}

void overwrite(const fs::path& file, std::size_t offset, char byte) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(static_cast<std::streamoff>(offset));
  stream.put(byte);
}

TEST(HostTier, EvictsTheLeastRecentlyUsedWithinItsBudget) {
  HostTier tier(3 * kRecordBytes);
  for (std::uint64_t number = 1; number <= 3; ++number) tier.put(record(number));
  EXPECT_TRUE(holds(tier, 1));
  tier.put(record(4));
  EXPECT_TRUE(holds(tier, 1));
  EXPECT_FALSE(holds(tier, 2));
  EXPECT_TRUE(holds(tier, 3));
  EXPECT_EQ(tier.statistics().bytes, 3 * kRecordBytes);
  tier.check_invariants();
}

TEST(HostTier, HandsEvictedRecordsToTheNextTier) {
  HostTier lower(10 * kRecordBytes);
  HostTier upper(2 * kRecordBytes);
  upper.set_next(&lower);
  for (std::uint64_t number = 1; number <= 5; ++number) upper.put(record(number));
  for (std::uint64_t number = 1; number <= 3; ++number) EXPECT_TRUE(holds(lower, number));
  EXPECT_FALSE(lower.contains(name_of(4)));
  upper.flush();
  EXPECT_TRUE(holds(lower, 5));
  EXPECT_TRUE(holds(upper, 5));
}

TEST(HostTier, ARecordLargerThanTheBudgetGoesStraightDown) {
  HostTier lower(10 * kRecordBytes);
  HostTier upper(kRecordBytes - 1);
  upper.set_next(&lower);
  upper.put(record(1));
  EXPECT_FALSE(upper.contains(name_of(1)));
  EXPECT_TRUE(holds(lower, 1));
}

TEST(HostTier, ReservedBytesAreTakenFromRecords) {
  HostTier tier(3 * kRecordBytes);
  for (std::uint64_t number = 1; number <= 3; ++number) tier.put(record(number));
  EXPECT_TRUE(tier.reserve(2 * kRecordBytes));
  EXPECT_EQ(tier.statistics().records, 1U);
  EXPECT_FALSE(tier.reserve(2 * kRecordBytes));
  tier.check_invariants();
  tier.unreserve(2 * kRecordBytes);
  EXPECT_THROW(tier.unreserve(1), BrokenInvariant);
  EXPECT_TRUE(tier.reserve(3 * kRecordBytes));
}

TEST(HostTier, AnotherRecordUnderTheSameKeyIsAMiss) {
  HostTier tier(3 * kRecordBytes);
  tier.put(record(1));
  ChainKey other = name_of(1);
  other.lineage = name_of(2).lineage;
  EXPECT_FALSE(tier.contains(other));
  EXPECT_EQ(tier.get(other), nullptr);
  EXPECT_TRUE(holds(tier, 1));
}

TEST(DiskTier, KeepsRecordsThroughAReopening) {
  TemporaryFolder folder;
  auto tier = open_disk(folder);
  for (std::uint64_t number = 1; number <= 20; ++number) tier->put(record(number));
  tier.reset();
  tier = open_disk(folder);
  EXPECT_EQ(tier->statistics().records, 20U);
  for (std::uint64_t number = 1; number <= 20; ++number) EXPECT_TRUE(holds(*tier, number));
  tier->check_invariants();
}

TEST(DiskTier, TruncatedRecordIsAMissAndIsRemoved) {
  for (const std::size_t length : {std::size_t{0}, std::size_t{10}, kRecordHeaderBytes, kRecordBytes - 1}) {
    TemporaryFolder folder;
    auto tier = open_disk(folder);
    tier->put(record(1));
    fs::resize_file(folder.records().front(), length);
    EXPECT_EQ(tier->get(name_of(1)), nullptr);
    EXPECT_EQ(tier->statistics().lost, 1U);
    EXPECT_TRUE(folder.records().empty());
    tier->put(record(1));
    EXPECT_TRUE(holds(*tier, 1));
  }
}

TEST(DiskTier, PoisonedRecordIsAMissAndIsRemoved) {
  for (const std::size_t offset :
       {std::size_t{0}, std::size_t{8}, std::size_t{50}, kRecordHeaderBytes + 1, kRecordBytes - 1}) {
    TemporaryFolder folder;
    auto tier = open_disk(folder);
    tier->put(record(1));
    overwrite(folder.records().front(), offset, '\x7f');
    EXPECT_EQ(tier->get(name_of(1)), nullptr) << "offset " << offset;
    EXPECT_TRUE(folder.records().empty());
    tier->check_invariants();
  }
}

TEST(DiskTier, DeletedRecordIsAMiss) {
  TemporaryFolder folder;
  auto tier = open_disk(folder);
  tier->put(record(1));
  fs::remove(folder.records().front());
  EXPECT_EQ(tier->get(name_of(1)), nullptr);
  EXPECT_EQ(tier->statistics().records, 0U);
}

TEST(DiskTier, ARecordUnderAnotherRecordsNameIsAMiss) {
  TemporaryFolder folder;
  auto tier = open_disk(folder);
  tier->put(record(1));
  const fs::path first = folder.records().front();
  tier->put(record(2));
  const std::vector<fs::path> files = folder.records();
  const fs::path second = files[0] == first ? files[1] : files[0];
  fs::copy_file(first, second, fs::copy_options::overwrite_existing);
  EXPECT_EQ(tier->get(name_of(2)), nullptr);
  EXPECT_TRUE(holds(*tier, 1));
  tier.reset();
  fs::create_directories(second.parent_path());
  fs::copy_file(first, second, fs::copy_options::overwrite_existing);
  tier = open_disk(folder);
  EXPECT_EQ(tier->statistics().records, 1U);
  EXPECT_EQ(tier->statistics().lost, 1U);
}

TEST(DiskTier, ReopenAfterTornWriteKeepsTheIntactRecords) {
  TemporaryFolder folder;
  auto tier = open_disk(folder);
  for (std::uint64_t number = 1; number <= 5; ++number) tier->put(record(number));
  tier.reset();
  const std::vector<fs::path> files = folder.records();
  fs::copy_file(files[0], fs::path(files[0]) += ".part");  // killed between write and rename
  fs::resize_file(files[1], kRecordBytes / 2);             // the file system lost the end
  fs::resize_file(files[2], 7);
  std::ofstream(files[3], std::ios::binary) << "something else entirely";
  tier = open_disk(folder);
  EXPECT_EQ(tier->statistics().records, 2U);
  EXPECT_EQ(tier->statistics().lost, 4U);
  EXPECT_EQ(folder.records().size(), 2U);
  int found = 0;
  for (std::uint64_t number = 1; number <= 5; ++number) found += holds(*tier, number) ? 1 : 0;
  EXPECT_EQ(found, 2);
}

TEST(DiskTier, RecordsOfAnotherNamespaceAreLeftAlone) {
  TemporaryFolder folder;
  open_disk(folder)->put(record(1));
  DiskTier other(folder.path(), {1, 1}, 1 << 20, ignore_report);
  EXPECT_EQ(other.get(name_of(1)), nullptr);
  EXPECT_EQ(folder.records().size(), 1U);
}

TEST(DiskTier, AForeignRecordInTheFolderIsRemoved) {
  TemporaryFolder folder;
  open_disk(folder)->put(record(1));
  const fs::path file = folder.records().front();
  const Key128 other{1, 1};
  const fs::path there = folder.path() / to_hex(other) / file.parent_path().filename();
  fs::create_directories(there);
  fs::copy_file(file, there / file.filename());
  DiskTier tier(folder.path(), other, 1 << 20, ignore_report);
  EXPECT_EQ(tier.statistics().records, 0U);
  EXPECT_EQ(tier.statistics().lost, 1U);
}

TEST(DiskTier, HoldsItsBudgetAlsoWhenReopenedWithLess) {
  TemporaryFolder folder;
  auto tier = open_disk(folder, 4 * kRecordBytes);
  for (std::uint64_t number = 1; number <= 9; ++number) tier->put(record(number));
  EXPECT_EQ(folder.records().size(), 4U);
  EXPECT_TRUE(holds(*tier, 9));
  EXPECT_FALSE(holds(*tier, 5));
  tier.reset();
  tier = open_disk(folder, 2 * kRecordBytes);
  EXPECT_EQ(folder.records().size(), 2U);
  tier->check_invariants();
}

TEST(DiskTier, AFullDiskIsReportedOnceAndReadingGoesOn) {
  TemporaryFolder folder;
  std::vector<std::string> lines;
  auto tier = open_disk(folder, 1 << 20, [&](const std::string& line) { lines.push_back(line); });
  tier->put(record(1));
  // A limit on file sizes stands in for a full disk: writes fall short in the same way.
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { kRecordBytes / 2, before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  tier->put(record(2));
  tier->put(record(3));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("File too large"), std::string::npos) << lines[0];
  EXPECT_FALSE(tier->writing());
  EXPECT_TRUE(holds(*tier, 1));
  EXPECT_FALSE(holds(*tier, 2));
  EXPECT_EQ(folder.records().size(), 1U) << "half a file was left behind";
  tier->check_invariants();
}

TEST(DiskTier, AFolderThatCannotBeMadeIsReportedOnceAndTheTierStaysEmpty) {
  std::vector<std::string> lines;
  DiskTier tier("/proc/thalweg-cannot-be-made", kSpace, 1 << 20,
                [&](const std::string& line) { lines.push_back(line); });
  tier.put(record(1));
  EXPECT_FALSE(holds(tier, 1));
  EXPECT_EQ(lines.size(), 1U);
}

TEST(DiskTier, AFileInPlaceOfTheFolderIsRefused) {
  TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  EXPECT_THROW(DiskTier(folder.path() / "file", kSpace, 1 << 20, ignore_report), InputError);
}

TEST(DiskTier, AFolderInUseIsNotSharedWithASecondTier) {
  TemporaryFolder folder;
  const auto first = open_disk(folder);
  first->put(record(1));
  std::vector<std::string> lines;
  const auto second = open_disk(folder, 1 << 20, [&](const std::string& line) { lines.push_back(line); });
  EXPECT_EQ(lines.size(), 1U);
  EXPECT_FALSE(holds(*second, 1));
  second->put(record(2));
  EXPECT_EQ(folder.records().size(), 1U);
}

}  // namespace
}  // namespace thalweg::cache
