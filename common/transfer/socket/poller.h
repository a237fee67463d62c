#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/transfer/socket/unique_fd.h"

namespace penstock {

// Waits for sockets (epoll) and for other threads (an eventfd). One thread
// waits; Poke may be called from any.
class Poller {
 public:
  static absl::StatusOr<std::unique_ptr<Poller>> Create();

  struct Interest {
    bool read = false;
    bool write = false;
  };
  // Tags are the caller's names for descriptors; 0 is taken.
  absl::Status Add(int fd, uint64_t tag, Interest interest);
  void Change(int fd, uint64_t tag, Interest interest);
  // Before the descriptor is closed.
  void Remove(int fd);

  struct Event {
    uint64_t tag = 0;
    bool readable = false;  // or broken: a read tells
    bool writable = false;
  };
  // What happened, at the latest after `timeout`; valid until the next Wait.
  absl::Span<const Event> Wait(absl::Duration timeout);

  void Poke();

 private:
  static constexpr size_t kEventsAtOnce = 64;

  Poller(UniqueFd epoll, UniqueFd wakeup)
      : epoll_(std::move(epoll)), wakeup_(std::move(wakeup)) {}

  const UniqueFd epoll_;
  const UniqueFd wakeup_;
  std::array<epoll_event, kEventsAtOnce> raw_;
  std::array<Event, kEventsAtOnce> events_;
};

}  // namespace penstock
