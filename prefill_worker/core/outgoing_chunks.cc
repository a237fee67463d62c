#include "prefill_worker/core/outgoing_chunks.h"

#include "common/base/sometimes.h"

namespace penstock {

absl::Status OutgoingChunks::Connect(
    const WorkerKey& peer, const std::vector<TransportAddress>& addresses) {
  peer_ = peer;
  return routes_.Connect(context_->transports, peer, addresses);
}

std::optional<ChunkDone> OutgoingChunks::Share(
    int ready, absl::Span<const BlockHold> blocks) {
  if (ready <= next_block_) return std::nullopt;
  ChunkDone done{transfer_, next_chunk_++, next_block_, {}, {}};
  for (; next_block_ < ready; ++next_block_) {
    done.shared.push_back(blocks[next_block_].ref());
  }
  return done;
}

void OutgoingChunks::Post(int ready, absl::Span<const BlockHold> blocks) {
  for (OutgoingChunk& chunk : std::exchange(again_, {})) {
    if (chunk.first_block + chunk.blocks <= ready) {
      Post(std::move(chunk), blocks);
    } else {
      again_.push_back(std::move(chunk));
    }
  }
  OutgoingChunk chunk;
  chunk.first_block = next_block_;
  while (next_block_ < ready && granted_.contains(next_block_)) ++next_block_;
  chunk.blocks = next_block_ - chunk.first_block;
  if (chunk.blocks == 0) return;
  chunk.number = next_chunk_++;
  Post(std::move(chunk), blocks);
}

void OutgoingChunks::Post(OutgoingChunk chunk,
                          absl::Span<const BlockHold> blocks) {
  ++chunk.attempts;
  chunk.via = &routes_.best();
  std::vector<PageWrite> writes;
  writes.reserve(chunk.blocks);
  chunk.pins.reserve(chunk.blocks);
  for (int i = 0; i < chunk.blocks; ++i) {
    const int block = chunk.first_block + i;
    chunk.pins.push_back(context_->pool->Pin(blocks[block].ref()));
    writes.push_back({chunk.pins.back().ref().index,
                      granted_.at(block),
                      {0, context_->layout.layers}});
  }
  const PostId post =
      chunk.via->Post(peer_, transfer_, std::move(writes), PostDeadline(chunk));
  posts_.emplace(PostKey{chunk.via->caps().kind, post}, std::move(chunk));
}

Instant OutgoingChunks::PostDeadline(const OutgoingChunk& chunk) const {
  size_t pages = chunk.pins.size();
  for (const auto& [key, ahead] : posts_) pages += ahead.pins.size();
  return context_->clock->Now() +
         TimeToPost(context_->options, pages * context_->layout.block_bytes());
}

std::optional<OutgoingChunk> OutgoingChunks::TakePosted(
    TransportKind via, const PostCompletion& completion) {
  auto node = posts_.extract(PostKey{via, completion.post});
  if (node.empty()) return std::nullopt;
  // The pages are the sequence's again: when it is preempted they can go, and
  // what is asked for once more is sent when they are back.
  node.mapped().pins.clear();
  return std::move(node.mapped());
}

ChunkDone OutgoingChunks::Arrived(OutgoingChunk chunk,
                                  const PostCompletion& completion) {
  bytes_ += completion.bytes;
  routes_.Carried(chunk.via, completion.bytes);
  chunk.checksums = completion.checksums;
  ChunkDone done{
      transfer_, chunk.number, chunk.first_block, chunk.checksums, {}};
  const int number = chunk.number;
  arrived_.emplace(number, std::move(chunk));
  return done;
}

std::optional<OutgoingChunk> OutgoingChunks::TakeArrived(int number) {
  auto node = arrived_.extract(number);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

bool OutgoingChunks::SendAgain(OutgoingChunk chunk) {
  if (chunk.attempts >= context_->options.max_chunk_attempts) return false;
  routes_.Failed(chunk.via);
  if (chunk.via != &routes_.best()) {
    Sometimes<"a chunk went on over another transport">();
  }
  again_.push_back(std::move(chunk));
  return true;
}

void OutgoingChunks::CancelPosts() {
  for (const auto& [key, chunk] : posts_) chunk.via->Cancel(key.second);
}

void OutgoingChunks::CountBlocks(BlockCensus& census) const {
  for (const auto& [key, chunk] : posts_) census.Add(chunk.pins);
}

std::vector<KvManifest::MovedBlock> OutgoingChunks::Moved() const {
  std::vector<KvManifest::MovedBlock> moved;
  for (const auto& [number, chunk] : arrived_) {
    for (size_t i = 0; i < chunk.checksums.size(); ++i) {
      moved.push_back(
          {chunk.first_block + static_cast<int>(i), chunk.checksums[i]});
    }
  }
  return moved;
}

}  // namespace penstock
