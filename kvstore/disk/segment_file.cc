#include "kvstore/disk/segment_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "kvstore/disk/disk_io.h"

namespace penstock {
namespace {

constexpr absl::string_view kSuffix = ".pkv";
// No store comes so far; what is named so is nobody's.
constexpr uint64_t kLastNumber = uint64_t{1} << 62;

std::string NameOf(uint64_t number) {
  return absl::StrFormat("%016x%s", number, kSuffix);
}

// DATA_LOSS: the file ends before.
absl::Status ReadAt(int fd, uint64_t offset, absl::Span<uint8_t> into) {
  while (!into.empty()) {
    const ssize_t got =
        pread(fd, into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return DiskError(errno, "reading a segment");
    if (got == 0) return absl::DataLossError("the segment ends too early");
    into.remove_prefix(got);
    offset += got;
  }
  return absl::OkStatus();
}

}  // namespace

SegmentFile::~SegmentFile() { close(fd_); }

absl::StatusOr<std::shared_ptr<SegmentFile>> SegmentFile::Create(
    const std::string& directory, const SegmentHeader& header,
    const BlockHasher& hasher, Options options) {
  std::string path = absl::StrCat(directory, "/", NameOf(header.number));
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC |
                    (options.sync_each_page ? O_DSYNC : 0);
  const int fd = open(path.c_str(), flags, 0600);
  if (fd < 0) return DiskError(errno, absl::StrCat("making ", path));
  std::shared_ptr<SegmentFile> file(new SegmentFile(path, fd));
  file->header_ = header;
  file->header_bytes_ = EncodeSegmentHeader(header, hasher);
  const ssize_t wrote =
      pwrite(fd, file->header_bytes_.data(), file->header_bytes_.size(), 0);
  if (wrote != static_cast<ssize_t>(file->header_bytes_.size())) {
    const int error = wrote < 0 ? errno : ENOSPC;
    static_cast<void>(file->Remove());
    return DiskError(error, absl::StrCat("writing ", path));
  }
  return file;
}

absl::StatusOr<std::shared_ptr<SegmentFile>> SegmentFile::Open(
    const std::string& directory, uint64_t number, const StoreIdentity& store,
    const BlockHasher& hasher) {
  std::string path = absl::StrCat(directory, "/", NameOf(number));
  // Whatever else bears the name is not followed or waited for.
  const int fd =
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return absl::DataLossError(absl::StrCat("cannot open ", path));
  std::shared_ptr<SegmentFile> file(new SegmentFile(path, fd));
  struct stat about = {};
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
    return absl::DataLossError(absl::StrCat(path, " is not a file"));
  }
  RETURN_IF_ERROR(ReadAt(fd, 0, absl::MakeSpan(file->header_bytes_)));
  ASSIGN_OR_RETURN(file->header_,
                   DecodeSegmentHeader(file->header_bytes_, hasher));
  if (file->header_.number != number || !(file->header_.store == store)) {
    return absl::DataLossError(absl::StrCat(path, " is of another store"));
  }
  return file;
}

absl::StatusOr<std::vector<uint64_t>> SegmentFile::List(
    const std::string& directory, size_t most) {
  DIR* listing = opendir(directory.c_str());
  if (listing == nullptr) {
    return DiskError(errno, absl::StrCat("listing ", directory));
  }
  std::vector<uint64_t> numbers;
  while (const dirent* entry = readdir(listing)) {
    const absl::string_view name = entry->d_name;
    uint64_t number = 0;
    // Only what this code would have named so.
    if (name.size() == 16 + kSuffix.size() &&
        absl::SimpleHexAtoi(name.substr(0, 16), &number) && number > 0 &&
        number <= kLastNumber && name == NameOf(number)) {
      numbers.push_back(number);
    }
  }
  closedir(listing);
  std::sort(numbers.begin(), numbers.end());
  if (numbers.size() > most) {
    numbers.erase(numbers.begin(), numbers.end() - most);
  }
  return numbers;
}

void SegmentFile::Discard(const std::string& directory, uint64_t number) {
  unlink(absl::StrCat(directory, "/", NameOf(number)).c_str());
}

absl::StatusOr<SegmentFile::Scan> SegmentFile::ReadRecords(
    const BlockHasher& hasher) const {
  struct stat about = {};
  if (fstat(fd_, &about) != 0) return DiskError(errno, "asking for its size");
  const uint64_t size = std::max<off_t>(about.st_size, kSegmentHeaderBytes);
  const uint64_t slots = (size - kSegmentHeaderBytes) / SlotBytes(store());
  Scan scan;
  scan.slots = static_cast<uint32_t>(
      std::min<uint64_t>(slots, std::numeric_limits<uint32_t>::max()));
  scan.torn = (size - kSegmentHeaderBytes) % SlotBytes(store()) != 0;
  for (uint32_t slot = 0; slot < scan.slots; ++slot) {
    RecordHeaderBytes bytes;
    RETURN_IF_ERROR(
        ReadAt(fd_, SlotOffset(store(), slot), absl::MakeSpan(bytes)));
    auto record = DecodeRecordHeader(bytes, header_bytes_, slot,
                                     store().page_bytes, hasher);
    if (record.ok()) {
      scan.records.push_back(*record);
    } else {
      ++scan.bad;
    }
  }
  return scan;
}

absl::Status SegmentFile::Sync() const {
  if (fdatasync(fd_) != 0) return DiskError(errno, "syncing");
  return absl::OkStatus();
}

absl::Status SegmentFile::Remove() const {
  if (unlink(path_.c_str()) != 0) {
    return DiskError(errno, absl::StrCat("removing ", path_));
  }
  return absl::OkStatus();
}

}  // namespace penstock
