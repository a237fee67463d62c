#include "tools/penstock/terminal.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/base/check.h"

namespace penstock {

Terminal::Terminal() {
  sigset_t interrupts;
  sigemptyset(&interrupts);
  sigaddset(&interrupts, SIGINT);
  CHECK(pthread_sigmask(SIG_BLOCK, &interrupts, nullptr) == 0);
  signal_fd_ = signalfd(-1, &interrupts, SFD_CLOEXEC);
  CHECK(signal_fd_ >= 0) << "signalfd: errno " << errno;
}

Terminal::~Terminal() { close(signal_fd_); }

Terminal::Event Terminal::ReadLine(std::string* line) {
  while (true) {
    if (std::optional<std::string> taken = TakeLine()) {
      *line = *std::move(taken);
      return Event::kLine;
    }
    if (at_end_) return Event::kEnd;
    if (WaitFor(STDIN_FILENO) == Event::kInterrupt) return Event::kInterrupt;
    char bytes[4096];
    const ssize_t count = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (count > 0) {
      buffer_.append(bytes, count);
    } else if (count == 0 || errno != EINTR) {
      at_end_ = true;
    }
  }
}

Terminal::Event Terminal::WaitFor(int fd) {
  pollfd fds[] = {{signal_fd_, POLLIN, 0}, {fd, POLLIN, 0}};
  while (poll(fds, 2, -1) < 0) {
    CHECK(errno == EINTR) << "poll: errno " << errno;
  }
  if (fds[0].revents == 0) return Event::kReady;
  TakeInterrupt();
  return Event::kInterrupt;
}

std::optional<std::string> Terminal::TakeLine() {
  const size_t end = buffer_.find('\n');
  if (end == std::string::npos) {
    if (!at_end_ || buffer_.empty()) return std::nullopt;
    return std::exchange(buffer_, "");
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  return line;
}

void Terminal::TakeInterrupt() {
  signalfd_siginfo info;
  CHECK(read(signal_fd_, &info, sizeof(info)) == sizeof(info));
}

}  // namespace penstock
