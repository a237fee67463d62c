#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tools/penstock/child_process.h"

namespace penstock {

// Children of one terminal: what they write is shown line by line under their
// names, and SIGINT and SIGTERM come to whoever waits here. The signals stay
// blocked from construction on, in every thread started later. One a process,
// used by the main thread.
class ProcessGroup {
 public:
  struct Member {
    ChildProcess::Options options;
    std::unique_ptr<ChildProcess> process;
    std::string announcement;  // the first line of its stdout
    std::string last_line;     // of what it showed since
    bool reported = false;     // its end has been told; it can be restarted
  };

  ProcessGroup();
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // The member stays where it is as long as the group lives.
  absl::StatusOr<Member*> Start(ChildProcess::Options options);

  // Starts a member again whose end has been told, with other arguments.
  absl::Status Restart(Member& member, std::vector<std::string> arguments);

  // Shows output and reaps until `done` (asked again after each event and
  // every `tick`). CANCELLED after SIGINT or SIGTERM, DEADLINE_EXCEEDED when
  // `timeout` passes first.
  absl::Status WaitUntil(const std::function<bool()>& done, absl::Duration tick,
                         absl::Duration timeout);

  const std::vector<std::unique_ptr<Member>>& members() const {
    return members_;
  }

 private:
  // Waits for an event; true: a signal asks us to stop.
  bool Poll(absl::Duration timeout);
  void Drain(Member& member);
  void Show(Member& member, std::string line);

  int signal_fd_ = -1;
  size_t name_width_ = 0;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace penstock
