#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/sometimes.h"
#include "common/engine/resume.h"
#include "common/peer/error_reason.h"
#include "decode_worker/core/decode_transfer.h"

// What arrives for a transfer: pages, announcements, the commit, and what is
// left of them when it fails.

namespace penstock {

void DecodeTransfer::OnRenew() {
  if (state_ < DecodeState::kCommitted) lease_.Refresh();
}

void DecodeTransfer::OnArrival(TransportKind via, const PageArrival& arrival) {
  // A page may be written more than once until the fence: sent again after its
  // post expired, or over another transport. That must not change it.
  auto page = arrived_.find(arrival.block);
  bool changed = arrival.landed && page != arrived_.end() &&
                 page->second != arrival.checksum;
  if (!arrival.status.ok()) {
    // The sender learns of it from its own completion and sends again.
    context_->probe->PageRefused(arrival.status.message());
    if (arrival.landed && page == arrived_.end()) {
      spoiled_[arrival.block] = via;
    } else if (changed) {
      spoiled_[arrival.block] = via;
      OnPageChanged(arrival.block);
    }
    return;
  }
  if (state_ >= DecodeState::kCommitted) {
    if (changed) OnPageChanged(arrival.block);
    return;
  }
  if (state_ == DecodeState::kMapped) Move(state_, DecodeState::kReceiving);
  if (state_ != DecodeState::kReceiving) return;
  lease_.Refresh();
  if (changed) OnPageChanged(arrival.block);
  arrived_[arrival.block] = arrival.checksum;
  auto spoiled = spoiled_.find(arrival.block);
  if (spoiled != spoiled_.end() && spoiled->second == via) {
    spoiled_.erase(spoiled);
  }
  summary_.bytes_moved += arrival.bytes;
  uint64_t carried = bytes_by_kind_[via] += arrival.bytes;
  if (std::all_of(bytes_by_kind_.begin(), bytes_by_kind_.end(),
                  [&](const auto& kind) { return kind.second <= carried; })) {
    summary_.transport = TransportName(via);
  }
  MaybeCommit();
}

void DecodeTransfer::OnPageChanged(BlockRef block) {
  if (state_ == DecodeState::kCommitted) {
    Fail(MakeError(ErrorReason::kTransferFailed,
                   "a page changed after it was committed"));
    return;
  }
  if (keep_) {
    for (size_t at = 0; at < blocks_.size(); ++at) {
      if (blocks_[at].ref() == block) verified_[at] = false;
    }
  }
  if (state_ != DecodeState::kReceiving) return;
  arrived_.erase(block);
  for (auto at = checked_chunks_.begin(); at != checked_chunks_.end(); ++at) {
    const ChunkDone& chunk = at->second;
    for (size_t i = 0; i < chunk.checksums.size(); ++i) {
      if (blocks_[chunk.first_prompt_block + i].ref() != block) continue;
      for (size_t j = 0; j < chunk.checksums.size(); ++j) {
        verified_[chunk.first_prompt_block + j] = false;
      }
      Nack(chunk, "a page changed after it had arrived");
      checked_chunks_.erase(at);
      return;
    }
  }
}

bool DecodeTransfer::TakeSpoiled(const ChunkDone& chunk) {
  bool found = false;
  for (size_t i = 0; i < chunk.checksums.size(); ++i) {
    const BlockRef block = blocks_[chunk.first_prompt_block + i].ref();
    if (spoiled_.erase(block) == 0) continue;
    arrived_.erase(block);
    found = true;
  }
  return found;
}

void DecodeTransfer::Nack(const ChunkDone& chunk, const std::string& why) {
  context_->probe->ChunkNacked(why);
  chunks_.erase(chunk.chunk);
  Send(ChunkNack{id_, chunk.chunk, why});
}

void DecodeTransfer::ArmArrivalTimer() {
  if (arrival_timer_ != 0) return;
  arrival_timer_ = context_->timers->Schedule(
      context_->clock->Now() + context_->options.arrival_timeout,
      [this] { NackMissing(); });
}

void DecodeTransfer::NackMissing() {
  arrival_timer_ = 0;
  if (state_ != DecodeState::kReceiving) return;
  for (const ChunkDone& chunk : std::exchange(waiting_chunks_, {})) {
    Nack(chunk, "pages were announced and did not arrive");
  }
}

void DecodeTransfer::OnChunkDone(ChunkDone message) {
  if (state_ == DecodeState::kMapped) Move(state_, DecodeState::kReceiving);
  if (state_ != DecodeState::kReceiving) return;
  lease_.Refresh();
  // Every chunk brings a block, so there are no more of them than blocks.
  if (message.chunk < 0 || message.chunk >= prompt_blocks()) {
    Fail(MakeError(
        ErrorReason::kTransferFailed,
        absl::StrCat("chunk number ", message.chunk, " is out of range")));
    return;
  }
  if (!chunks_.insert(message.chunk).second) return;  // repeated
  if (shared_) {
    TakeShared(message);
  } else {
    waiting_chunks_.push_back(std::move(message));
  }
  MaybeCommit();
}

void DecodeTransfer::TakeShared(const ChunkDone& message) {
  for (size_t i = 0; i < message.shared.size(); ++i) {
    size_t at = message.first_prompt_block + i;
    BlockHold hold = context_->pool->TryHold(message.shared[i]);
    if (at != blocks_.size() || at >= verified_.size() || !hold) {
      Fail(MakeError(
          ErrorReason::kTransferFailed,
          absl::StrCat("shared block ", at, " is out of order or gone")));
      return;
    }
    blocks_.push_back(std::move(hold));
    verified_[at] = true;
    ++summary_.blocks_shared;
  }
}

bool DecodeTransfer::CheckChunk(const ChunkDone& message) {
  for (size_t i = 0; i < message.checksums.size(); ++i) {
    int64_t at = int64_t{message.first_prompt_block} + static_cast<int64_t>(i);
    if (at < have_blocks_ || at >= static_cast<int64_t>(blocks_.size())) {
      Fail(MakeError(ErrorReason::kTransferFailed,
                     absl::StrCat("chunk names prompt block ", at,
                                  ", which was not granted")));
      return true;
    }
    auto page = arrived_.find(blocks_[at].ref());
    if (page == arrived_.end()) return false;
    if (page->second != message.checksums[i]) {
      Nack(message, "checksum");
      return true;
    }
  }
  if (TakeSpoiled(message)) {
    Nack(message, "a page was overwritten");
    return true;
  }
  for (size_t i = 0; i < message.checksums.size(); ++i) {
    size_t at = message.first_prompt_block + i;
    if (!verified_[at]) ++summary_.blocks_moved;
    verified_[at] = true;
  }
  checked_chunks_.insert_or_assign(message.chunk, message);
  return true;
}

void DecodeTransfer::MaybeCommit() {
  std::vector<ChunkDone> chunks = std::exchange(waiting_chunks_, {});
  for (ChunkDone& chunk : chunks) {
    if (state_ != DecodeState::kReceiving) return;
    if (!CheckChunk(chunk)) waiting_chunks_.push_back(std::move(chunk));
  }
  if (waiting_chunks_.empty()) {
    context_->timers->Cancel(std::exchange(arrival_timer_, 0));
  } else {
    ArmArrivalTimer();
  }
  if (!commit_.has_value() || !waiting_chunks_.empty() ||
      (state_ != DecodeState::kReceiving && state_ != DecodeState::kMapped)) {
    return;
  }
  if (absl::Status status = Verify(commit_->manifest); !status.ok()) {
    Fail(status);
    return;
  }
  Move(state_, DecodeState::kCommitted);
  lease_.End();
}

void DecodeTransfer::OnCommit(Commit message) {
  if (commit_.has_value() && state_ >= DecodeState::kCommitted) {
    // Repeated: the acknowledgement may have been lost.
    if (state_ == DecodeState::kActive) Send(CommitAck{id_});
    return;
  }
  if (state_ != DecodeState::kMapped && state_ != DecodeState::kReceiving) {
    return;
  }
  lease_.Refresh();
  commit_ = std::move(message);
  MaybeCommit();
}

absl::Status DecodeTransfer::Verify(const KvManifest& manifest) {
  auto mismatch = [&](absl::string_view what) {
    return MakeError(
        ErrorReason::kTransferFailed,
        absl::StrCat("manifest of ", peer_.name, " does not match: ", what));
  };
  if (manifest.layout != context_->layout.id() ||
      manifest.content != context_->content) {
    return mismatch("layout or model");
  }
  if (manifest.prompt_tokens != static_cast<int>(history_.size()) ||
      manifest.block_hashes != context_->hasher->Chain(root_, history_)) {
    return mismatch("token hash chain");
  }
  if (manifest.chunks != static_cast<int>(chunks_.size())) {
    return mismatch("chunk count");
  }
  if (static_cast<int>(blocks_.size()) != prompt_blocks() ||
      std::find(verified_.begin(), verified_.end(), false) != verified_.end()) {
    return mismatch("a block is missing");
  }
  if (!shared_ && manifest.moved.size() != blocks_.size() - have_blocks_) {
    return mismatch("moved block count");
  }
  for (const KvManifest::MovedBlock& moved : manifest.moved) {
    if (moved.prompt_block < have_blocks_ ||
        moved.prompt_block >= static_cast<int>(blocks_.size())) {
      return mismatch("moved block out of range");
    }
    auto page = arrived_.find(blocks_[moved.prompt_block].ref());
    if (page == arrived_.end() || page->second != moved.checksum) {
      return mismatch(absl::StrCat("checksum of block ", moved.prompt_block));
    }
  }
  auto resumed = ParseState(manifest.state, leg_.request, root_,
                            context_->tokenizer, context_->context_length);
  if (!resumed.ok()) return mismatch(resumed.status().message());
  if (!GoesOnAfterDelivered(*resumed)) return mismatch("delivered tokens");
  resumed_ = *std::move(resumed);
  return absl::OkStatus();
}

// What the KV was made for is what the client has, and one token more.
bool DecodeTransfer::GoesOnAfterDelivered(
    absl::Span<const ResumedAnswer> answers) const {
  const size_t before = history_.size() - leg_.request.prompt.size();
  for (const ResumedAnswer& answer : answers) {
    if (answer.drawn.size() != before + 1) return false;
    for (size_t i = 0; i < before; ++i) {
      if (answer.drawn[i].token != leg_.delivered[0][i].token) return false;
    }
  }
  return true;
}

// --- keeping --------------------------------------------------------------

int DecodeTransfer::VerifiedTokens() const {
  auto first_missing = std::find(verified_.begin(), verified_.end(), false);
  const int blocks = static_cast<int>(first_missing - verified_.begin());
  return std::min(blocks * kBlockTokens, static_cast<int>(history_.size()));
}

void DecodeTransfer::FailKeeping(const absl::Status& status) {
  int kept = 0;
  if (state_ == DecodeState::kOffered && has_leg()) {
    // What an earlier leg left and this one did not take is there still.
    context_->kept->Renew(id_.request);
    kept = context_->kept->Look(id_.request, history_);
  } else if ((state_ == DecodeState::kMapped ||
              state_ == DecodeState::kReceiving) &&
             !shared_) {
    // By reference, prefill's side keeps them.
    kept = VerifiedTokens();
    keep_ = kept > 0;
  }
  Fail(WithKeptTokens(status, kept));
}

// Fewer than FailKeeping said, when a late write changed a page meanwhile.
void DecodeTransfer::KeepVerified() {
  keep_ = false;
  KeptKv::Prefix prefix;
  prefix.computed = VerifiedTokens();
  if (prefix.computed == 0) return;
  Sometimes<"decode kept verified pages of a request that lost its prefill">();
  prefix.tokens.assign(history_.begin(), history_.begin() + prefix.computed);
  prefix.blocks = std::exchange(blocks_, {});
  prefix.blocks.erase(prefix.blocks.begin() + BlocksFor(prefix.computed),
                      prefix.blocks.end());
  KeepForNextLeg(*context_, id_.request, std::move(prefix));
}

}  // namespace penstock
