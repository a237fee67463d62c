#include "common/runtime/shutdown_signal.h"

#include <signal.h>

#include <cerrno>
#include <ctime>

#include "common/base/check.h"

namespace penstock {
namespace {

sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

ShutdownSignal::ShutdownSignal() {
  const sigset_t signals = Signals();
  CHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
}

int ShutdownSignal::Wait() {
  const sigset_t signals = Signals();
  int number = 0;
  while (sigwait(&signals, &number) != 0) {
  }
  return number;
}

int ShutdownSignal::WaitFor(absl::Duration timeout) {
  const sigset_t signals = Signals();
  const timespec limit = absl::ToTimespec(timeout);
  const int number = sigtimedwait(&signals, nullptr, &limit);
  return number > 0 ? number : 0;
}

}  // namespace penstock
