#include "common/transfer/socket/poller.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

epoll_event ToRaw(uint64_t tag, Poller::Interest interest) {
  epoll_event event = {};
  event.data.u64 = tag;
  if (interest.read) event.events |= EPOLLIN;
  if (interest.write) event.events |= EPOLLOUT;
  return event;
}

// Rounded up: waking too early would spin until the deadline.
int ToMillis(absl::Duration timeout) {
  if (timeout == absl::InfiniteDuration()) return -1;
  int64_t millis =
      absl::ToInt64Milliseconds(absl::Ceil(timeout, absl::Milliseconds(1)));
  return static_cast<int>(std::clamp<int64_t>(millis, 0, INT_MAX));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Poller>> Poller::Create() {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  UniqueFd wakeup(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll || !wakeup) {
    return absl::ResourceExhaustedError(
        absl::StrCat("epoll or eventfd: ", std::strerror(errno)));
  }
  std::unique_ptr<Poller> poller(
      new Poller(std::move(epoll), std::move(wakeup)));
  RETURN_IF_ERROR(poller->Add(poller->wakeup_.get(), 0, {.read = true}));
  return poller;
}

absl::Status Poller::Add(int fd, uint64_t tag, Interest interest) {
  epoll_event event = ToRaw(tag, interest);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("epoll_ctl: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

void Poller::Change(int fd, uint64_t tag, Interest interest) {
  epoll_event event = ToRaw(tag, interest);
  CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0)
      << std::strerror(errno);
}

void Poller::Remove(int fd) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

absl::Span<const Poller::Event> Poller::Wait(absl::Duration timeout) {
  int count =
      epoll_wait(epoll_.get(), raw_.data(), raw_.size(), ToMillis(timeout));
  size_t kept = 0;
  for (int i = 0; i < count; ++i) {
    const epoll_event& raw = raw_[i];
    if (raw.data.u64 == 0) {
      uint64_t pokes;
      // Emptying it is all; a failed read was emptied before.
      [[maybe_unused]] ssize_t got = read(wakeup_.get(), &pokes, sizeof(pokes));
      continue;
    }
    events_[kept++] = {raw.data.u64,
                       (raw.events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0,
                       (raw.events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0};
  }
  return absl::MakeConstSpan(events_).first(kept);
}

void Poller::Poke() {
  uint64_t one = 1;
  // Full means that a wake is due anyway.
  [[maybe_unused]] ssize_t put = write(wakeup_.get(), &one, sizeof(one));
}

}  // namespace penstock
