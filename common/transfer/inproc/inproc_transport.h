#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/transfer/inproc/inproc_hub.h"
#include "common/transfer/post_table.h"
#include "common/transfer/progress/progress_transport.h"

namespace penstock {

// Copies pages between the arenas of workers that share a process. Pages carry
// the same headers as on a wire and pass the same checks, so that refusals are
// the same everywhere. Its address is the worker's name.
class InprocTransport final : public ProgressTransport {
 public:
  struct Options {
    TransportOptions worker;
    // Null: the process's. Outlives the transport.
    InprocHub* hub = nullptr;
  };

  // ALREADY_EXISTS: the hub has a worker of this name.
  static absl::StatusOr<std::unique_ptr<InprocTransport>> Create(
      Options options);

  // Outstanding posts never complete; pages that are landing here finish.
  ~InprocTransport() override;

 private:
  struct Peer {
    TransportAddress address;
    uint64_t last_sent = 0;
    // The receiver's memory of this connection.
    ReceiveChannel channel;
  };

  InprocTransport(const Options& options, InprocHub* hub);

  void Poke() override;

  // The progress thread, until told to stop.
  void Run();
  // Waits for a command, or for nothing when `busy`; false: stop.
  bool WaitForWork(bool busy);
  void Execute(Command command);
  // Moves one page for each peer that has one waiting; true: there may be more.
  bool MovePages();
  // OK or a refusal: the peer's verdict on the page. Any other error is about
  // the peer.
  absl::Status Move(const WorkerKey& key, Peer& peer,
                    const PostTable::Write& write, uint64_t& bytes);

  InprocHub* const hub_;

  // The progress thread's own.
  PostTable posts_;
  std::map<WorkerKey, Peer> peers_;

  std::mutex mutex_;
  std::condition_variable poked_;
  bool poke_ = false;  // guarded by mutex_
  bool stop_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace penstock
