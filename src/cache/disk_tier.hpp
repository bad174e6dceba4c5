// Records in files, one each, that survive a restart.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "cache/tier.hpp"

namespace thalweg::cache {

/// Folder `root`/<namespace>/<first byte of the key>/<key>. A file appears whole by a rename or not at all,
/// is checked in full whenever it is read, and is removed when it is not what it should be: a torn,
/// truncated, foreign or changed record is a miss. Nothing is synced to the device: what a power cut tears,
/// the checksum finds. Other namespaces' folders are left alone, and their bytes are not counted.
class DiskTier final : public Tier {
 public:
  /// Receives one line the first time something is wrong with the store itself.
  using Report = std::function<void(const std::string&)>;

  /// Opens or creates the store and takes in the intact records found there, oldest file first. Where that is
  /// not possible (no permission, in use by another process), says so once and stays empty. `root` being
  /// something else than a folder is an InputError.
  DiskTier(std::filesystem::path root, const Key128& space, std::size_t budget_bytes, Report report);
  ~DiskTier() override;

  /// False once writing has failed (disk full or read-only): nothing is written any more, reading goes on.
  bool writing() const { return writing_; }

 protected:
  bool store(const RecordPtr& record) override;
  RecordPtr load(const RecordInfo& info) override;
  void drop(const RecordInfo& info) override;

 private:
  bool open_folder();
  void take_in_records();
  void take_in_file(const std::filesystem::path& file);
  std::filesystem::path path_of(const Key128& key) const;
  void stop_writing(const std::string& what);

  std::filesystem::path folder_;
  Key128 space_;
  Report report_;
  bool writing_ = true;
  int lock_ = -1;
};

}  // namespace thalweg::cache
