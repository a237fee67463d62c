#pragma once

#include <optional>
#include <string>

namespace penstock {

// Lines of stdin and Ctrl-C as one source of events, for a program that talks
// to a person. SIGINT stays blocked from construction on, in every thread that
// is started later. One a process; used by one thread.
class Terminal {
 public:
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  enum class Event { kLine, kEnd, kInterrupt, kReady };

  // Waits for a whole line, without its newline, for the end of stdin, or for
  // Ctrl-C.
  Event ReadLine(std::string* line);

  // Waits for Ctrl-C (kInterrupt) or until `fd` is readable (kReady).
  Event WaitFor(int fd);

 private:
  std::optional<std::string> TakeLine();
  void TakeInterrupt();

  int signal_fd_ = -1;
  std::string buffer_;
  bool at_end_ = false;
};

}  // namespace penstock
