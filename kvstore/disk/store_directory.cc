#include "kvstore/disk/store_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "kvstore/disk/disk_io.h"

namespace penstock {
namespace {

// `path` and the folders above it, for this user alone.
absl::Status MakeFolders(const std::string& path) {
  for (size_t at = path.find('/', 1); true; at = path.find('/', at + 1)) {
    const std::string folder = path.substr(0, at);
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      return DiskError(errno, absl::StrCat("making ", folder));
    }
    if (at == std::string::npos) return absl::OkStatus();
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<StoreDirectory>> StoreDirectory::Open(
    const std::string& root, const StoreIdentity& store) {
  if (root.empty()) {
    return absl::InvalidArgumentError("the disk tier's directory is empty");
  }
  std::string path = absl::StrCat(
      root, "/",
      absl::StrFormat("%016x-%016x-%016x", store.worker.content.value(),
                      store.worker.layout.value(),
                      store.worker.numerics.value()));
  RETURN_IF_ERROR(MakeFolders(path));
  const std::string lock = absl::StrCat(path, "/lock");
  const int fd = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return DiskError(errno, absl::StrCat("opening ", lock));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    close(fd);
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is in use; give each worker its own directory"));
  }
  return std::unique_ptr<StoreDirectory>(
      new StoreDirectory(std::move(path), fd));
}

StoreDirectory::~StoreDirectory() { close(lock_); }

absl::Status StoreDirectory::Sync() const {
  const int fd = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return DiskError(errno, absl::StrCat("opening ", path_));
  const int result = fsync(fd);
  const int error = errno;
  close(fd);
  if (result != 0) return DiskError(error, absl::StrCat("syncing ", path_));
  return absl::OkStatus();
}

}  // namespace penstock
