#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/id.h"
#include "common/env/clock.h"
#include "common/transfer/kv_transport.h"

namespace penstock {

// The source's outstanding posts: which write goes next to each peer, and
// exactly one completion for each post whatever happens first: the last ack, a
// nack, a cancel, the deadline or the loss of the peer. Single-threaded, owned
// by a transport's progress thread.
class PostTable {
 public:
  struct Post {
    PostId id = 0;
    WorkerKey peer;
    TransferId transfer;
    std::vector<PageWrite> writes;
    Instant deadline;
  };

  struct Write {
    PostId post = 0;
    size_t index = 0;  // among the post's writes
    TransferId transfer;
    PageWrite page;
  };

  // Precondition: the id is new. A post without writes completes at once.
  void Add(Post post);

  // Takes the next write for a peer, in the order of posting; it is in flight
  // until Acked. Nothing: no write waits.
  std::optional<Write> Next(const WorkerKey& peer);

  // What the completion will claim about a write in flight.
  void SetChecksum(const Write& write, uint64_t checksum);

  // The peer's verdict on a write in flight; `bytes` count when it is OK. After
  // a refusal the post's unsent writes are not sent any more. A post that has
  // completed (by its deadline) is ignored.
  void Acked(PostId post, uint64_t bytes, const absl::Status& verdict);

  // Unsent writes are not sent; completes when none is in flight: CANCELLED,
  // or OK if all had been sent and were taken.
  void Cancel(PostId post);

  // All posts to the peer complete with this status, in flight or not.
  void Fail(const WorkerKey& peer, const absl::Status& status);

  // Completes every post whose deadline is not after `now` with
  // DEADLINE_EXCEEDED; returns the peers that had such writes in flight.
  std::set<WorkerKey> Expire(Instant now);

  // Infinite() when nothing is outstanding.
  Instant NextDeadline() const;

  bool empty() const { return posts_.empty(); }
  // Has the peer writes that Next would give?
  bool waiting(const WorkerKey& peer) const { return unsent_.contains(peer); }

  std::vector<PostCompletion> TakeCompletions();

 private:
  struct Live {
    Post post;
    size_t next = 0;
    size_t in_flight = 0;
    uint64_t bytes = 0;
    std::vector<uint64_t> checksums;
    absl::Status status;  // the first thing that went wrong
  };
  using Posts = std::map<PostId, Live>;

  // Stops sending the post's remaining writes.
  void Stop(Live& live, absl::Status status);
  void CompleteIfDone(Posts::iterator at);
  void Complete(Posts::iterator at);

  Posts posts_;
  std::map<WorkerKey, std::deque<PostId>> unsent_;
  std::set<std::pair<Instant, PostId>> deadlines_;
  std::vector<PostCompletion> completions_;
};

}  // namespace penstock
