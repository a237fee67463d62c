#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/model/block_hash.h"
#include "kvstore/disk/segment_format.h"

namespace penstock {

// One segment of a store: an open file and what its header says. Immutable but
// for the file's contents; any thread.
class SegmentFile {
 public:
  struct Options {
    // Each page reaches the device before its write ends.
    bool sync_each_page = false;
  };

  // A new segment, empty. ALREADY_EXISTS, RESOURCE_EXHAUSTED, INTERNAL.
  static absl::StatusOr<std::shared_ptr<SegmentFile>> Create(
      const std::string& directory, const SegmentHeader& header,
      const BlockHasher& hasher, Options options);

  // One that is there, to be read. DATA_LOSS: it is none of this store.
  static absl::StatusOr<std::shared_ptr<SegmentFile>> Open(
      const std::string& directory, uint64_t number, const StoreIdentity& store,
      const BlockHasher& hasher);

  // Numbers of the segments in a directory, rising. At most `most`, the newest.
  static absl::StatusOr<std::vector<uint64_t>> List(
      const std::string& directory, size_t most);

  // Removes what Open refused.
  static void Discard(const std::string& directory, uint64_t number);

  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;
  ~SegmentFile();

  // Every record header of the file's whole slots that is what it should be:
  // what a torn tail or a flipped bit spoils is left out and counted.
  struct Scan {
    std::vector<RecordHeader> records;
    uint32_t slots = 0;
    uint32_t bad = 0;
    bool torn = false;  // part of a slot follows
  };
  absl::StatusOr<Scan> ReadRecords(const BlockHasher& hasher) const;

  // Waits until what was written reached the device.
  absl::Status Sync() const;
  // The name goes; what is open stays readable.
  absl::Status Remove() const;

  int fd() const { return fd_; }
  uint64_t number() const { return header_.number; }
  const StoreIdentity& store() const { return header_.store; }
  const SegmentHeaderBytes& header_bytes() const { return header_bytes_; }

 private:
  SegmentFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  const int fd_;
  SegmentHeader header_;
  SegmentHeaderBytes header_bytes_ = {};
};

}  // namespace penstock
