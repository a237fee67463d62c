#include "common/transfer/shm/peer_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace penstock {

absl::StatusOr<std::unique_ptr<PeerMemory>> PeerMemory::Map(
    UniqueFd fd, const KvLayout& layout) {
  if (!fd) {
    return absl::FailedPreconditionError("no memory came with the hello");
  }
  int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return absl::FailedPreconditionError(
        "the source's memory is not sealed against shrinking");
  }
  struct stat facts;
  if (fstat(fd.get(), &facts) != 0 || facts.st_size < 0 ||
      static_cast<uint64_t>(facts.st_size) < layout.block_bytes()) {
    return absl::FailedPreconditionError("the source's memory holds no block");
  }
  void* memory =
      mmap(nullptr, facts.st_size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the source's memory cannot be mapped: ", std::strerror(errno)));
  }
  // The mapping outlives the descriptor.
  return std::unique_ptr<PeerMemory>(new PeerMemory(
      {static_cast<uint8_t*>(memory), static_cast<size_t>(facts.st_size)},
      layout));
}

PeerMemory::~PeerMemory() {
  absl::Span<uint8_t> bytes = pages_.arena().bytes;
  munmap(bytes.data(), bytes.size());
}

}  // namespace penstock
