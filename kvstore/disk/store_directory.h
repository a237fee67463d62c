#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kvstore/disk/segment_format.h"

namespace penstock {

// The folder of one store, this process's alone while this object lives. A
// process that dies lets go of it.
class StoreDirectory {
 public:
  // Makes what is missing of `root`/IDENTITY. FAILED_PRECONDITION: another
  // process, or another tier of this one, has it.
  static absl::StatusOr<std::unique_ptr<StoreDirectory>> Open(
      const std::string& root, const StoreIdentity& store);

  StoreDirectory(const StoreDirectory&) = delete;
  StoreDirectory& operator=(const StoreDirectory&) = delete;
  ~StoreDirectory();

  const std::string& path() const { return path_; }

  // Waits until names that were made in it reached the device.
  absl::Status Sync() const;

 private:
  StoreDirectory(std::string path, int lock)
      : path_(std::move(path)), lock_(lock) {}

  const std::string path_;
  const int lock_;
};

}  // namespace penstock
