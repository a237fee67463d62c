#include "tools/penstock/process_group.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace penstock {

ProcessGroup::ProcessGroup() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int number : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&signals, number);
  CHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  signal_fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  CHECK(signal_fd_ >= 0) << "signalfd: errno " << errno;
}

ProcessGroup::~ProcessGroup() { close(signal_fd_); }

absl::StatusOr<ProcessGroup::Member*> ProcessGroup::Start(
    ChildProcess::Options options) {
  auto member = std::make_unique<Member>();
  name_width_ = std::max(name_width_, options.name.size());
  ASSIGN_OR_RETURN(member->process, ChildProcess::Start(options));
  member->options = std::move(options);
  return members_.emplace_back(std::move(member)).get();
}

absl::Status ProcessGroup::Restart(Member& member,
                                   std::vector<std::string> arguments) {
  CHECK(member.reported) << member.options.name << " runs";
  ChildProcess::Options options = member.options;
  options.arguments = std::move(arguments);
  ASSIGN_OR_RETURN(member.process, ChildProcess::Start(options));
  member.options = std::move(options);
  member.announcement.clear();
  member.last_line.clear();
  member.reported = false;
  return absl::OkStatus();
}

absl::Status ProcessGroup::WaitUntil(const std::function<bool()>& done,
                                     absl::Duration tick,
                                     absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!done()) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError("timed out");
    }
    if (Poll(std::min(tick, left))) return absl::CancelledError("interrupted");
  }
  return absl::OkStatus();
}

bool ProcessGroup::Poll(absl::Duration timeout) {
  std::vector<pollfd> fds = {{signal_fd_, POLLIN, 0}};
  for (const auto& member : members_) {
    // A negative descriptor is skipped by poll.
    fds.push_back({member->process->out().fd, POLLIN, 0});
    fds.push_back({member->process->err().fd, POLLIN, 0});
  }
  const int64_t milliseconds =
      std::min<int64_t>(absl::ToInt64Milliseconds(timeout) + 1, 1 << 30);
  const int ready =
      poll(fds.data(), fds.size(), static_cast<int>(milliseconds));
  CHECK(ready >= 0 || errno == EINTR) << "poll: errno " << errno;
  bool stop = false;
  signalfd_siginfo info;
  while (read(signal_fd_, &info, sizeof(info)) == sizeof(info)) {
    stop = stop || info.ssi_signo != SIGCHLD;
  }
  for (const auto& member : members_) Drain(*member);
  return stop;
}

void ProcessGroup::Drain(Member& member) {
  ChildProcess& process = *member.process;
  // Reaped first: what it wrote before its end is in the pipes by then.
  const bool ended = process.TryReap().has_value();
  for (std::string& line : ChildProcess::ReadLines(process.out())) {
    if (member.announcement.empty()) {
      member.announcement = std::move(line);
    } else {
      Show(member, std::move(line));
    }
  }
  for (std::string& line : ChildProcess::ReadLines(process.err())) {
    Show(member, std::move(line));
  }
  if (ended && !std::exchange(member.reported, true)) {
    std::cerr << process.name() << " " << DescribeExit(*process.TryReap())
              << std::endl;
  }
}

void ProcessGroup::Show(Member& member, std::string line) {
  const std::string& name = member.process->name();
  std::cerr << name << std::string(name_width_ - name.size(), ' ') << " | "
            << line << std::endl;
  member.last_line = std::move(line);
}

}  // namespace penstock
