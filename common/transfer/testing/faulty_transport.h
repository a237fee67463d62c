#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/env/clock.h"
#include "common/transfer/kv_transport.h"

namespace penstock {

// A transport that goes wrong when told to, for tests and the simulator. Posts
// are faulted in the order in which they are made; everything else passes
// through. Single-threaded like the engine that uses it; no fault waits for
// time, only for calls. (What happens to bytes in flight is PageFaults'.)
class FaultyTransport : public KvTransport {
 public:
  enum class Fault {
    kNone,
    // Waits for Release: delay, and, by the order of the calls, reordering.
    kHold,
    // Is written twice; one completion.
    kDuplicate,
    // Never leaves: completes by its deadline, Cancel or the loss of the peer.
    kDrop,
  };

  // `clock` is asked about the deadlines of posts that are held or dropped.
  FaultyTransport(std::unique_ptr<KvTransport> inner, const Clock* clock);
  ~FaultyTransport() override;

  // The next posts get these faults, one each; then none.
  void Script(std::vector<Fault> faults);

  // Lets a held post go. If it has completed meanwhile (cancelled, expired,
  // peer lost) its writes go all the same: a late write, of which nobody hears
  // at the source.
  void Release(PostId post);
  // Held posts, oldest first, completed ones included.
  std::vector<PostId> held() const;

  // A peer's restart: DropPeer of the old incarnation completes its posts, held
  // ones included, with UNAVAILABLE; Connect to the new one passes through.

  const TransportCaps& caps() const override { return inner_->caps(); }
  TransportAddress Describe() const override { return inner_->Describe(); }
  absl::Status Connect(const WorkerKey& peer,
                       const TransportAddress& address) override;
  void PrepareReceive(TransferId transfer,
                      const std::vector<BlockRef>& blocks) override;
  bool Revoke(TransferId transfer) override;
  PostId Post(const WorkerKey& peer, TransferId transfer,
              std::vector<PageWrite> writes, Instant deadline) override;
  void Cancel(PostId post) override;
  void DropPeer(const WorkerKey& peer) override;
  std::optional<PostCompletion> PollCompletion() override;
  std::optional<PageArrival> PollArrival() override;

 private:
  struct Pending {
    WorkerKey peer;
    TransferId transfer;
    std::vector<PageWrite> writes;
    Instant deadline;
    bool dropped = false;
    bool completed = false;  // the engine was told
  };

  // Hands the writes on; without an id to the engine nobody hears of it.
  void Forward(const Pending& pending, std::optional<PostId> as);
  void CompletePending(PostId id, Pending& pending, absl::Status status);

  const std::unique_ptr<KvTransport> inner_;
  const Clock* const clock_;
  std::deque<Fault> script_;
  PostId last_post_ = 0;
  std::map<PostId, Pending> pending_;                  // held or dropped
  std::map<PostId, std::optional<PostId>> forwarded_;  // by the inner's id
  std::deque<PostCompletion> completions_;
};

}  // namespace penstock
