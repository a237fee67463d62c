#include "kernels/cpu/packed_weights.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/model/files/content_hash.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr char kSuffix[] = ".weights";
constexpr uint64_t kMagic = 0x31574b5054534e50;  // "PNSTPKW1"
// Before the weights, which start on a page.
constexpr size_t kHeaderBytes = 4096;
struct Header {
  uint64_t magic, content, layout, bytes, checksum;
};
// Another process packs for so long at most; then this one does without.
constexpr std::chrono::minutes kPatience(5);
// What nobody has used for so long goes when something new is written.
constexpr auto kKept = std::chrono::hours(24 * 30);

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

absl::Status Failed(absl::string_view what, const std::string& path) {
  return absl::UnavailableError(
      absl::StrCat(what, " ", path, ": ", std::strerror(errno)));
}

uint64_t Checksum(const uint8_t* data, size_t bytes, ThreadPool* pool) {
  const ParallelFor parallel_for =
      [pool](int64_t count, const std::function<void(int64_t)>& body) {
        std::atomic<int64_t> next{0};
        pool->Run([&](int, int) {
          for (int64_t i; (i = next.fetch_add(1)) < count;) body(i);
        });
      };
  return HashContent({{data, bytes}}, kMagic, parallel_for, {}).value();
}

// Held while a file of the folder is looked for or made; the end of a process
// lets go of it.
absl::Status Lock(int fd, const std::string& path) {
  const steady_clock::time_point end = steady_clock::now() + kPatience;
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return Failed("locking", path);
    if (steady_clock::now() > end) {
      return absl::UnavailableError(
          absl::StrCat("another process holds ", path));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return absl::OkStatus();
}

// A twentieth of the disk stays free.
absl::Status CheckRoom(const std::string& folder, size_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat(folder, ": ", error.message()));
  }
  if (space.available > bytes &&
      space.available - bytes >= space.capacity / 20) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      folder, ": ", bytes, " bytes would leave less than a twentieth ",
      "of the disk free"));
}

void RemoveUnused(const std::string& folder) {
  std::error_code error;
  const auto oldest = fs::file_time_type::clock::now() - kKept;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == kSuffix &&
        entry.last_write_time(error) < oldest && !error) {
      fs::remove(entry.path(), error);
    }
  }
}

}  // namespace

absl::StatusOr<PackedWeights> PackedWeights::Create(const Options& options,
                                                    ThreadPool* pool,
                                                    Pack pack) {
  if (!options.folder.empty() && options.content != 0 && options.bytes > 0) {
    absl::StatusOr<PackedWeights> cached = FromFolder(options, pool, pack);
    if (cached.ok()) return cached;
    Log(LogLevel::kWarning, "packed weights are not kept",
        {{"why", std::string(cached.status().message())}});
  }
  PackedWeights weights;
  ASSIGN_OR_RETURN(weights.memory_, HugeBuffer::Create(options.bytes));
  pack(weights.memory_.data());
  return weights;
}

absl::StatusOr<PackedWeights> PackedWeights::FromFolder(const Options& options,
                                                        ThreadPool* pool,
                                                        Pack pack) {
  std::error_code error;
  if (fs::create_directories(options.folder, error)) {
    fs::permissions(options.folder, fs::perms::owner_all, error);
  }
  const std::string name = absl::StrCat(
      options.folder, "/", absl::Hex(options.content, absl::kZeroPad16), "-",
      absl::Hex(options.layout, absl::kZeroPad16));
  const std::string lock_path = name + ".lock";
  const Descriptor lock(
      open(lock_path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (lock.get() < 0) return Failed("opening", lock_path);
  RETURN_IF_ERROR(Lock(lock.get(), lock_path));
  const std::string path = name + kSuffix;
  absl::StatusOr<PackedWeights> there = Map(options, path, pool);
  if (there.ok()) return there;
  if (!absl::IsNotFound(there.status())) {
    Log(LogLevel::kWarning, "packed weights are made anew",
        {{"why", std::string(there.status().message())}});
  }
  RETURN_IF_ERROR(CheckRoom(options.folder, options.bytes));
  RemoveUnused(options.folder);
  return Write(options, path, pool, pack);
}

absl::StatusOr<PackedWeights> PackedWeights::Map(const Options& options,
                                                 const std::string& path,
                                                 ThreadPool* pool) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    return errno == ENOENT ? absl::NotFoundError(path)
                           : Failed("opening", path);
  }
  struct stat info;
  const size_t size = kHeaderBytes + options.bytes;
  if (fstat(file.get(), &info) != 0 ||
      static_cast<uint64_t>(info.st_size) != size) {
    return absl::DataLossError(absl::StrCat(path, " has not its length"));
  }
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return Failed("mapping", path);
  PackedWeights weights(mapped, size);
  madvise(mapped, size, MADV_WILLNEED);
  madvise(mapped, size, MADV_HUGEPAGE);  // advice only
  const auto* header = static_cast<const Header*>(mapped);
  if (header->magic != kMagic || header->content != options.content ||
      header->layout != options.layout || header->bytes != options.bytes ||
      header->checksum != Checksum(weights.data(), options.bytes, pool)) {
    return absl::DataLossError(absl::StrCat(path, " has not its checksum"));
  }
  // Its last use, for RemoveUnused.
  futimens(file.get(), nullptr);
  return weights;
}

absl::StatusOr<PackedWeights> PackedWeights::Write(const Options& options,
                                                   const std::string& path,
                                                   ThreadPool* pool,
                                                   Pack pack) {
  const std::string unfinished = path + ".new";
  const size_t size = kHeaderBytes + options.bytes;
  const Descriptor file(
      open(unfinished.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600));
  if (file.get() < 0) return Failed("opening", unfinished);
  void* mapped = MAP_FAILED;
  // Its blocks are there before they are written to: a full disk would end
  // the process later.
  errno = posix_fallocate(file.get(), 0, static_cast<off_t>(size));
  if (errno == 0) {
    mapped =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  }
  if (mapped == MAP_FAILED) {
    absl::Status status = Failed("making", unfinished);
    unlink(unfinished.c_str());
    return status;
  }
  PackedWeights weights(mapped, size);
  auto* data = static_cast<uint8_t*>(mapped) + kHeaderBytes;
  pack(data);
  const Header header = {kMagic, options.content, options.layout, options.bytes,
                         Checksum(data, options.bytes, pool)};
  std::memcpy(mapped, &header, sizeof header);
  mprotect(mapped, size, PROT_READ);
  if (rename(unfinished.c_str(), path.c_str()) != 0) {
    unlink(unfinished.c_str());
    Log(LogLevel::kWarning, "packed weights are not kept",
        {{"why", std::string(Failed("renaming", unfinished).message())}});
  }
  return weights;
}

PackedWeights::~PackedWeights() {
  if (file_ != nullptr) munmap(file_, file_bytes_);
}

PackedWeights::PackedWeights(PackedWeights&& other) noexcept
    : memory_(std::move(other.memory_)),
      file_(std::exchange(other.file_, nullptr)),
      file_bytes_(std::exchange(other.file_bytes_, 0)) {}

PackedWeights& PackedWeights::operator=(PackedWeights&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(file_, other.file_);
  std::swap(file_bytes_, other.file_bytes_);
  return *this;
}

const uint8_t* PackedWeights::data() const {
  return file_ == nullptr ? memory_.data()
                          : static_cast<uint8_t*>(file_) + kHeaderBytes;
}

}  // namespace penstock
