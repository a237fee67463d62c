#include "tools/penstock/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace penstock {
namespace {

struct Pipe {
  int read = -1;
  int write = -1;
};

Pipe MakePipe() {
  int fds[2];
  CHECK(pipe2(fds, O_CLOEXEC) == 0) << std::strerror(errno);
  return {fds[0], fds[1]};
}

// In the child, between fork and exec: only what is async-signal-safe.
[[noreturn]] void Execute(char** arguments, int out, int err, int inherit,
                          int failed, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the line above.
  if (getppid() != parent) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  // dup2 onto itself would keep close-on-exec.
  if (inherit == ChildProcess::kInherited) {
    fcntl(inherit, F_SETFD, 0);
  } else if (inherit >= 0) {
    dup2(inherit, ChildProcess::kInherited);
  }
  execv(arguments[0], arguments);
  const int error = errno;
  // Best effort: without it the parent sees a child that exits with 127.
  [[maybe_unused]] const ssize_t count = write(failed, &error, sizeof(error));
  _exit(127);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    Options options) {
  const Pipe out = MakePipe();
  const Pipe err = MakePipe();
  // Closed by a successful exec; else it brings errno.
  Pipe failed = MakePipe();
  // Out of the way of the inherited descriptor's number in the child.
  const int high = fcntl(failed.write, F_DUPFD_CLOEXEC, kInherited + 1);
  close(std::exchange(failed.write, high));

  std::vector<char*> arguments = {options.program.data()};
  for (std::string& argument : options.arguments) {
    arguments.push_back(argument.data());
  }
  arguments.push_back(nullptr);

  const pid_t parent = getpid();
  const pid_t pid = fork();
  CHECK(pid >= 0) << std::strerror(errno);
  if (pid == 0) {
    Execute(arguments.data(), out.write, err.write, options.inherit,
            failed.write, parent);
  }
  for (int fd : {out.write, err.write, failed.write}) close(fd);
  int error = 0;
  const ssize_t count = read(failed.read, &error, sizeof(error));
  close(failed.read);
  for (int fd : {out.read, err.read}) fcntl(fd, F_SETFL, O_NONBLOCK);
  auto child = std::unique_ptr<ChildProcess>(
      new ChildProcess(std::move(options.name), pid, out.read, err.read));
  if (count == sizeof(error)) {
    return absl::NotFoundError(
        absl::StrCat(options.program, ": ", std::strerror(error)));
  }
  return child;
}

ChildProcess::ChildProcess(std::string name, pid_t pid, int out, int err)
    : name_(std::move(name)), pid_(pid), out_{out, ""}, err_{err, ""} {}

ChildProcess::~ChildProcess() {
  if (!TryReap()) {
    kill(pid_, SIGKILL);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  for (int fd : {out_.fd, err_.fd}) {
    if (fd >= 0) close(fd);
  }
}

std::vector<std::string> ChildProcess::ReadLines(Stream& stream) {
  // A child that writes no newline must not fill our memory.
  constexpr size_t kMaxLine = 64 << 10;
  std::vector<std::string> lines;
  while (stream.fd >= 0) {
    char bytes[16384];
    const ssize_t count = read(stream.fd, bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) {
      close(std::exchange(stream.fd, -1));
      break;
    }
    stream.partial.append(bytes, count);
    size_t start = 0;
    for (size_t end;
         (end = stream.partial.find('\n', start)) != std::string::npos;
         start = end + 1) {
      lines.push_back(stream.partial.substr(start, end - start));
    }
    stream.partial.erase(0, start);
    if (stream.partial.size() > kMaxLine) {
      lines.push_back(std::exchange(stream.partial, ""));
    }
  }
  if (stream.fd < 0 && !stream.partial.empty()) {
    lines.push_back(std::exchange(stream.partial, ""));
  }
  return lines;
}

void ChildProcess::Signal(int number) {
  if (!wait_status_) kill(pid_, number);
}

std::optional<int> ChildProcess::TryReap() {
  int status = 0;
  if (!wait_status_ && waitpid(pid_, &status, WNOHANG) == pid_) {
    wait_status_ = status;
  }
  return wait_status_;
}

std::string DescribeExit(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return absl::StrCat("was ended by signal ", WTERMSIG(wait_status));
  }
  return absl::StrCat("exited with status ", WEXITSTATUS(wait_status));
}

}  // namespace penstock
