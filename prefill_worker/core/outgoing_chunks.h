#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/engine/worker_context.h"
#include "common/peer/handoff_message.h"
#include "prefill_worker/core/push_routes.h"

namespace penstock {

// Pages of consecutive blocks of a history that travel together.
struct OutgoingChunk {
  int number = 0;
  int first_block = 0;
  int blocks = 0;
  int attempts = 0;
  KvTransport* via = nullptr;       // of the last attempt
  std::vector<TransferPin> pins;    // while it is posted
  std::vector<uint64_t> checksums;  // once complete
};

// The pages of one transfer on their way to its decode worker: which are
// granted a place, posted, complete, or to be sent once more. Says nothing to
// the peer itself. Pages are pinned exactly while they are posted. Owned by
// PrefillTransfer, which outlives no post of it; single-threaded.
class OutgoingChunks {
 public:
  OutgoingChunks(const WorkerContext* context, TransferId transfer)
      : context_(context), transfer_(transfer) {}

  // Where pages go, and the leading blocks that need not. An error when there
  // is no transport in common.
  absl::Status Connect(const WorkerKey& peer,
                       const std::vector<TransportAddress>& addresses);
  void SkipTo(int block) { next_block_ = block; }
  // The peer's place for a block; a later grant replaces an earlier one.
  void Grant(int block, BlockRef place) { granted_[block] = place; }

  // Posts what is granted and complete, of the first `ready` of `blocks`: what
  // is to be sent once more, then what was not sent yet, in order.
  // Precondition: connected, ready <= blocks.size().
  void Post(int ready, absl::Span<const BlockHold> blocks);
  // Instead of that, in one process: names the blocks. None: nothing is new.
  std::optional<ChunkDone> Share(int ready, absl::Span<const BlockHold> blocks);

  // The chunk whose post has ended; its pages are free to go. None: the post
  // is no chunk's.
  std::optional<OutgoingChunk> TakePosted(TransportKind via,
                                          const PostCompletion& completion);
  // It arrived, as `completion` says: what the peer is to be told.
  ChunkDone Arrived(OutgoingChunk chunk, const PostCompletion& completion);
  // A chunk that arrived, for another try. None: no such.
  std::optional<OutgoingChunk> TakeArrived(int number);
  // With the next Post, over another transport if there is one. False: it was
  // tried too often, and is dropped.
  bool SendAgain(OutgoingChunk chunk);
  // Asks every transport to give up what is posted; completions still come.
  void CancelPosts();

  bool posting() const { return !posts_.empty(); }
  // The first `blocks` are with the peer, or under way.
  bool SentAll(int blocks) const {
    return again_.empty() && next_block_ >= blocks;
  }
  // With the checksums of the chunks that arrived.
  std::vector<KvManifest::MovedBlock> Moved() const;
  // The pages that are posted.
  void CountBlocks(BlockCensus& census) const;
  int chunks() const { return next_chunk_; }
  uint64_t bytes() const { return bytes_; }
  // Precondition: connected.
  TransportKind busiest() const { return routes_.busiest().caps().kind; }

 private:
  // Each transport numbers its own posts.
  using PostKey = std::pair<TransportKind, PostId>;

  void Post(OutgoingChunk chunk, absl::Span<const BlockHold> blocks);
  // When a post that brings this chunk counts as failed.
  Instant PostDeadline(const OutgoingChunk& chunk) const;

  const WorkerContext* context_;
  TransferId transfer_;
  WorkerKey peer_;
  PushRoutes routes_;
  absl::flat_hash_map<int, BlockRef> granted_;  // by block
  int next_block_ = 0;                          // first one not posted yet
  int next_chunk_ = 0;
  std::map<PostKey, OutgoingChunk> posts_;  // in flight
  std::map<int, OutgoingChunk> arrived_;    // by number, for a Nack
  std::vector<OutgoingChunk> again_;        // wait to be sent once more
  uint64_t bytes_ = 0;
};

}  // namespace penstock
