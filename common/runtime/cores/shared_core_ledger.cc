#include "common/runtime/cores/shared_core_ledger.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

absl::Status Failed(const std::string& path) {
  return absl::ErrnoToStatus(
      errno, absl::StrCat("core-ledger ", path,
                          ": give a file that this user may write, or none"));
}

bool Lock(int fd, int slot) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = slot;
  lock.l_len = 1;
  // Of this opening of the file, not of the process: one may have several.
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedCoreLedger>> SharedCoreLedger::Open(
    const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return Failed(path);
  std::unique_ptr<SharedCoreLedger> ledger(new SharedCoreLedger(fd));
  RETURN_IF_ERROR(ledger->Map(path));
  RETURN_IF_ERROR(ledger->TakeSlot(path));
  return ledger;
}

absl::Status SharedCoreLedger::Map(const std::string& path) {
  constexpr size_t kBytes = kSlots * sizeof(Slot);
  struct stat file;
  if (fstat(fd_, &file) != 0) return Failed(path);
  if (!S_ISREG(file.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("core-ledger ", path, " is not a file"));
  }
  // Who else could write it could cut it off under us.
  if (file.st_uid != geteuid()) {
    return absl::PermissionDeniedError(
        absl::StrCat("core-ledger ", path, " is another user's file"));
  }
  if (file.st_size == 0) {
    if (ftruncate(fd_, kBytes) != 0) return Failed(path);
  } else if (file.st_size != kBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "core-ledger ", path, " is something else; give a new file"));
  }
  void* mapped =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (mapped == MAP_FAILED) return Failed(path);
  slots_ = static_cast<Slot*>(mapped);
  return absl::OkStatus();
}

absl::Status SharedCoreLedger::TakeSlot(const std::string& path) {
  for (int slot = 0; slot < kSlots; ++slot) {
    if (!Lock(fd_, slot)) {
      if (errno == EAGAIN || errno == EACCES) continue;
      return Failed(path);
    }
    own_ = slot;
    Release();  // what one that died has left
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("core-ledger ", path, ": ", kSlots,
                   " workers share it already; give another file"));
}

SharedCoreLedger::~SharedCoreLedger() {
  if (own_ >= 0) Release();
  if (slots_ != nullptr) munmap(slots_, kSlots * sizeof(Slot));
  close(fd_);
}

void SharedCoreLedger::Claim(CoreUse use, Instant now) {
  const uint64_t until = (now + kLease).nanos();
  slots_[own_].store(2 * until + (use == CoreUse::kAnswers ? 1 : 0),
                     std::memory_order_release);
}

void SharedCoreLedger::Release() {
  slots_[own_].store(0, std::memory_order_release);
}

CoreClaims SharedCoreLedger::Others(Instant now) const {
  CoreClaims claims;
  for (int slot = 0; slot < kSlots; ++slot) {
    if (slot == own_) continue;
    const uint64_t claim = slots_[slot].load(std::memory_order_acquire);
    const auto until = Instant::FromNanos(static_cast<int64_t>(claim / 2));
    // What lies farther ahead than any claim is none.
    if (until <= now || until > now + kLease + kLease) continue;
    ++(claim % 2 == 1 ? claims.answers : claims.prompts);
  }
  return claims;
}

}  // namespace penstock
