#include "kernels/cpu/huge_buffer.h"

#include <sys/mman.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock {

constexpr size_t kHugePage = size_t{2} << 20;

absl::StatusOr<HugeBuffer> HugeBuffer::Create(size_t bytes) {
  const size_t size = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  // One page more, to cut out a piece that starts on a boundary.
  void* mapped = mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", size, " bytes of memory"));
  }
  auto* start = static_cast<uint8_t*>(mapped);
  const size_t skip =
      (kHugePage - reinterpret_cast<uintptr_t>(start) % kHugePage) % kHugePage;
  if (skip > 0) munmap(start, skip);
  if (skip < kHugePage) munmap(start + skip + size, kHugePage - skip);
  HugeBuffer buffer;
  buffer.data_ = start + skip;
  buffer.size_ = size;
  // Advice only: ordinary pages work too.
  if (size > 0) madvise(buffer.data_, size, MADV_HUGEPAGE);
  return buffer;
}

HugeBuffer::~HugeBuffer() {
  if (size_ > 0) munmap(data_, size_);
}

HugeBuffer::HugeBuffer(HugeBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

HugeBuffer& HugeBuffer::operator=(HugeBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace penstock
