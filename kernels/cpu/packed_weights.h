#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/cpu/huge_buffer.h"
#include "kernels/host/thread_pool.h"

namespace penstock {

// Memory of packed weights: this process's own, or a file of a cache folder
// that all processes of the host map, so that weights are packed once and lie
// in memory once. Owns it; movable; read by any thread.
class PackedWeights {
 public:
  struct Options {
    size_t bytes = 0;
    // What is packed (ContentId of the model) and how: any change of what
    // `pack` writes changes `layout`. Content 0 is never kept.
    uint64_t content = 0;
    uint64_t layout = 0;
    // Made if it is missing, for its owner alone. Empty: memory of its own.
    std::string folder;
  };
  // Fills `bytes` of zeroed memory.
  using Pack = absl::FunctionRef<void(uint8_t* data)>;

  PackedWeights() = default;
  // Packs only what the folder does not have whole: one process of the host
  // packs, others that start meanwhile wait for it. Contents are verified by
  // checksum, on all threads of the pool. A folder that cannot be used is
  // logged and done without. RESOURCE_EXHAUSTED: no memory.
  static absl::StatusOr<PackedWeights> Create(const Options& options,
                                              ThreadPool* pool, Pack pack);
  ~PackedWeights();
  PackedWeights(PackedWeights&& other) noexcept;
  PackedWeights& operator=(PackedWeights&& other) noexcept;

  const uint8_t* data() const;
  // Whether it is a file of the folder.
  bool cached() const { return file_ != nullptr; }

 private:
  PackedWeights(void* file, size_t file_bytes)
      : file_(file), file_bytes_(file_bytes) {}
  static absl::StatusOr<PackedWeights> FromFolder(const Options& options,
                                                  ThreadPool* pool, Pack pack);
  static absl::StatusOr<PackedWeights> Map(const Options& options,
                                           const std::string& path,
                                           ThreadPool* pool);
  static absl::StatusOr<PackedWeights> Write(const Options& options,
                                             const std::string& path,
                                             ThreadPool* pool, Pack pack);

  HugeBuffer memory_;
  void* file_ = nullptr;  // the whole mapping, its header first
  size_t file_bytes_ = 0;
};

}  // namespace penstock
