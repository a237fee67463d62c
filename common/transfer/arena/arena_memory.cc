#include "common/transfer/arena/arena_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// Not in Debian 12's <fcntl.h> without the kernel's own header.
#ifndef F_SEAL_FUTURE_WRITE
constexpr int F_SEAL_FUTURE_WRITE = 0x0010;
#endif

absl::Status Exhausted(const char* call, uint64_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("KV memory of ", bytes, " bytes: ", call, ": ",
                   std::strerror(errno), "; ask for less with --kv-memory"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ArenaMemory>> ArenaMemory::Create(
    uint64_t bytes) {
  if (bytes == 0) return absl::InvalidArgumentError("KV memory of 0 bytes");
  int fd = memfd_create("penstock-kv", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return Exhausted("memfd_create", bytes);
  void* memory = MAP_FAILED;
  if (ftruncate(fd, static_cast<off_t>(bytes)) == 0) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (memory == MAP_FAILED) {
    absl::Status status = Exhausted("mmap", bytes);
    close(fd);
    return status;
  }
  // A peer that maps this must be able to rely on its size; nobody needs to
  // write through it. Kernels before 5.1 lack the second seal; there, the
  // reader's own care is what is left.
  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
  fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL);
  return std::unique_ptr<ArenaMemory>(new ArenaMemory(
      {{static_cast<uint8_t*>(memory), static_cast<size_t>(bytes)}, fd}));
}

ArenaMemory::~ArenaMemory() {
  munmap(arena_.bytes.data(), arena_.bytes.size());
  close(arena_.fd);
}

}  // namespace penstock
