#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock {

// A program that this one started, with its stdout and stderr in pipes. It is
// in a process group of its own, so that Ctrl-C in the terminal is for its
// parent alone, and the kernel ends it when its parent dies. Whoever owns this
// reaps it; one that still runs at destruction is killed. Single-threaded;
// Start only from the main thread.
class ChildProcess {
 public:
  struct Options {
    std::string name;     // for people: "decode-0"
    std::string program;  // path
    std::vector<std::string> arguments;
    int inherit = -1;  // a descriptor that the child gets as kInherited
  };
  static constexpr int kInherited = 3;

  // NOT_FOUND when `program` cannot be executed.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(Options options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  const std::string& name() const { return name_; }
  pid_t pid() const { return pid_; }

  // One of the child's two streams, read without blocking.
  struct Stream {
    int fd = -1;  // -1 once it has ended
    std::string partial;
  };
  Stream& out() { return out_; }
  Stream& err() { return err_; }
  // Whole lines that have arrived; the last one also without its newline when
  // the stream has ended.
  static std::vector<std::string> ReadLines(Stream& stream);

  void Signal(int number);
  // How it ended, as waitpid has it; nullopt while it runs.
  std::optional<int> TryReap();

 private:
  ChildProcess(std::string name, pid_t pid, int out, int err);

  const std::string name_;
  const pid_t pid_;
  Stream out_;
  Stream err_;
  std::optional<int> wait_status_;
};

// "exited with status 1", "was ended by signal 9".
std::string DescribeExit(int wait_status);

}  // namespace penstock
