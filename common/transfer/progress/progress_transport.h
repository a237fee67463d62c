#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/transfer/arena_pages.h"
#include "common/transfer/kv_transport.h"
#include "common/transfer/page_header.h"
#include "common/transfer/post_table.h"
#include "common/transfer/progress/page_receiver.h"
#include "common/transfer/progress/transport_options.h"
#include "common/transfer/progress/wake_bell.h"

namespace penstock {

// A transport whose work is done by one progress thread: this is the half that
// faces the engine, the same for all. Calls become commands for the progress
// thread, which the derived class runs; results come back through queues.
class ProgressTransport : public KvTransport {
 public:
  const TransportCaps& caps() const final { return caps_; }
  TransportAddress Describe() const final;
  absl::Status Connect(const WorkerKey& peer,
                       const TransportAddress& address) final;
  void PrepareReceive(TransferId transfer,
                      const std::vector<BlockRef>& blocks) final;
  bool Revoke(TransferId transfer) final;
  PostId Post(const WorkerKey& peer, TransferId transfer,
              std::vector<PageWrite> writes, Instant deadline) final;
  void Cancel(PostId post) final;
  void DropPeer(const WorkerKey& peer) final;
  std::optional<PostCompletion> PollCompletion() final;
  std::optional<PageArrival> PollArrival() final;

 protected:
  struct ConnectCommand {
    WorkerKey peer;
    TransportAddress address;
  };
  struct CancelCommand {
    PostId post = 0;
  };
  struct DropCommand {
    WorkerKey peer;
  };
  // A fence waits for landings that may be abandoned.
  struct FenceCommand {};
  using Command = std::variant<ConnectCommand, PostTable::Post, CancelCommand,
                               DropCommand, FenceCommand>;

  ProgressTransport(TransportCaps caps, TransportOptions options);

  // Makes the progress thread look at its commands. Any thread, never blocks.
  virtual void Poke() = 0;

  // For the progress thread.
  std::vector<Command> TakeCommands();
  // Hands completions to the engine; the bell's Ring wakes it.
  void Complete(std::vector<PostCompletion> completions);
  // The header of a write about to leave, and the checksum that its completion
  // will claim.
  PageHeader MakeHeader(const PostTable::Write& write, Incarnation destination,
                        uint64_t sequence) const;
  const TransportOptions& options() const { return options_; }
  const ArenaPages& pages() const { return pages_; }
  PageReceiver& receiver() { return receiver_; }
  WakeBell& bell() { return bell_; }
  uint64_t access_key() const { return access_key_; }
  // Where peers reach this transport; set once, by Create.
  void set_address(std::string address) { address_ = std::move(address); }

 private:
  void Push(Command command);

  const TransportCaps caps_;
  const TransportOptions options_;
  const ArenaPages pages_;
  const uint64_t access_key_;
  std::string address_;
  WakeBell bell_;
  PageReceiver receiver_;

  std::mutex mutex_;
  std::map<WorkerKey, TransportAddress> peers_;  // guarded by mutex_
  std::vector<Command> commands_;                // guarded by mutex_
  std::deque<PostCompletion> completions_;       // guarded by mutex_
  PostId last_post_ = 0;                         // guarded by mutex_
};

}  // namespace penstock
