#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/engine/core_ledger.h"

namespace penstock {

// A CoreLedger in a small file that all workers of the host map: a slot for
// each, which is a claim in one word. The kernel's lock of a slot says that it
// is taken, and is gone with the process that had it.
class SharedCoreLedger : public CoreLedger {
 public:
  static constexpr int kSlots = 256;

  // Takes a slot of the file, which is made, for its owner alone, if missing.
  // PERMISSION_DENIED: the file is another user's. RESOURCE_EXHAUSTED: all
  // slots are taken. Else what the file system said, with the path.
  static absl::StatusOr<std::unique_ptr<SharedCoreLedger>> Open(
      const std::string& path);
  ~SharedCoreLedger() override;

  void Claim(CoreUse use, Instant now) override;
  void Release() override;
  CoreClaims Others(Instant now) const override;

 private:
  // Until when, in nanoseconds, times two; plus one for answers. 0: no claim.
  using Slot = std::atomic<uint64_t>;
  static_assert(Slot::is_always_lock_free && sizeof(Slot) == 8);

  explicit SharedCoreLedger(int fd) : fd_(fd) {}
  absl::Status Map(const std::string& path);
  absl::Status TakeSlot(const std::string& path);

  const int fd_;
  Slot* slots_ = nullptr;  // [kSlots]; mapped
  int own_ = -1;
};

}  // namespace penstock
