// Records in host memory.
#pragma once

#include <unordered_map>

#include "cache/tier.hpp"

namespace thalweg::cache {

/// Never loses a record. Its budget also pays for sequences saved on preemption (`reserve`).
class HostTier final : public Tier {
 public:
  explicit HostTier(std::size_t budget_bytes) : Tier("host", budget_bytes) {}

 protected:
  bool store(const RecordPtr& record) override {
    records_[record->info.name.key] = record;
    return true;
  }
  RecordPtr load(const RecordInfo& info) override { return records_.at(info.name.key); }
  void drop(const RecordInfo& info) override { records_.erase(info.name.key); }

 private:
  std::unordered_map<Key128, RecordPtr, Key128Hash> records_;
};

}  // namespace thalweg::cache
