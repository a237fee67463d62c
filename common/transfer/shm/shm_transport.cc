#include "common/transfer/shm/shm_transport.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/transfer/little_endian.h"
#include "common/transfer/shm/peer_memory.h"

namespace penstock {
namespace {

constexpr int kBacklog = 128;
// What follows each header: the source's block index.
constexpr size_t kLocatorBytes = 8;

absl::Status SystemError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

struct AbstractAddress {
  sockaddr_un raw = {};
  socklen_t size = 0;

  const sockaddr* data() const {
    return reinterpret_cast<const sockaddr*>(&raw);
  }
};

absl::StatusOr<AbstractAddress> ToAddress(const std::string& name) {
  AbstractAddress address;
  if (name.empty() || name.size() >= sizeof(address.raw.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shared-memory address \"", name, "\" has ", name.size(),
        " bytes; 1 to ", sizeof(address.raw.sun_path) - 1, " are allowed"));
  }
  address.raw.sun_family = AF_UNIX;
  std::memcpy(address.raw.sun_path + 1, name.data(), name.size());
  address.size = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  return address;
}

UniqueFd Socket() {
  return UniqueFd(
      socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// The one copy: from the source's memory into this worker's.
class CopyingReader : public BodyReader {
 public:
  explicit CopyingReader(std::unique_ptr<PeerMemory> memory)
      : memory_(std::move(memory)) {}

  uint64_t BodyBytes(const PageHeader& header) const override {
    return kLocatorBytes;
  }

  Pieces Targets(const Pieces& page) override {
    return {absl::MakeSpan(locator_)};
  }

  absl::Status Finish(const PageHeader& header, const Pieces& page) override {
    int64_t index = LoadLittleEndian<int64_t>(locator_.data());
    if (index < 0 || index >= memory_->pages().blocks()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the source has no block ", index));
    }
    Pieces from =
        memory_->pages().Page(static_cast<BlockIndex>(index), header.layers);
    CHECK(from.size() == page.size());
    for (size_t i = 0; i < page.size(); ++i) {
      CHECK(from[i].size() == page[i].size());
      std::memcpy(page[i].data(), from[i].data(), page[i].size());
    }
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<PeerMemory> memory_;
  std::array<uint8_t, kLocatorBytes> locator_{};
};

class ShmCarrier : public PageCarrier {
 public:
  ShmCarrier(std::string name, UniqueFd memory, const KvLayout& layout)
      : name_(std::move(name)), memory_(std::move(memory)), layout_(layout) {}

  absl::StatusOr<Listening> Listen() override {
    ASSIGN_OR_RETURN(AbstractAddress address, ToAddress(name_));
    UniqueFd fd = Socket();
    if (!fd) return SystemError("socket");
    if (bind(fd.get(), address.data(), address.size) != 0 ||
        listen(fd.get(), kBacklog) != 0) {
      return SystemError(absl::StrCat("cannot listen on @", name_));
    }
    return Listening{std::move(fd), name_};
  }

  absl::StatusOr<UniqueFd> Dial(const std::string& name) override {
    ASSIGN_OR_RETURN(AbstractAddress address, ToAddress(name));
    UniqueFd fd = Socket();
    if (!fd) return SystemError("socket");
    if (connect(fd.get(), address.data(), address.size) != 0) {
      return SystemError(absl::StrCat("cannot connect to @", name));
    }
    return fd;
  }

  int passed_fd() const override { return memory_.get(); }

  absl::StatusOr<std::unique_ptr<BodyReader>> OpenReader(
      UniqueFd passed) override {
    ASSIGN_OR_RETURN(std::unique_ptr<PeerMemory> memory,
                     PeerMemory::Map(std::move(passed), layout_));
    return std::make_unique<CopyingReader>(std::move(memory));
  }

  void AppendBody(const PageWrite& write, const ArenaPages& pages,
                  OutQueue& out) const override {
    std::array<uint8_t, kLocatorBytes> locator;
    StoreLittleEndian<int64_t>(write.source, locator.data());
    out.Append(locator);
  }

 private:
  const std::string name_;
  const UniqueFd memory_;
  const KvLayout layout_;
};

// A descriptor through which a peer can only read, whatever the seals say.
absl::StatusOr<UniqueFd> ReadOnlyCopy(int fd) {
  std::string path = absl::StrCat("/proc/self/fd/", fd);
  UniqueFd copy(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd < 0 || !copy) {
    return absl::FailedPreconditionError(
        "KV memory is not a memfd that can be shared");
  }
  return copy;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SocketTransport>> ShmTransport::Create(
    const Options& options) {
  ASSIGN_OR_RETURN(UniqueFd memory, ReadOnlyCopy(options.worker.arena.fd));
  std::string name = options.listen;
  if (name.empty()) {
    name = absl::StrFormat("penstock-%016x%016x", options.worker.entropy(),
                           options.worker.entropy());
  }
  return SocketTransport::Create(
      {TransportKind::kShm, /*receiver_validates=*/true, /*preference=*/20},
      options.worker, options.limits,
      std::make_unique<ShmCarrier>(std::move(name), std::move(memory),
                                   options.worker.layout));
}

}  // namespace penstock
