#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
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

void DecodeTransfer::OnAbort(const Abort& message) {
  if (state_ >= DecodeState::kCommitted) return;
  offer_.reset();  // the peer knows: nothing more to tell it
  if (message.code == absl::StatusCode::kOk) {
    // The first token ended the request, nothing is left to decode.
    Fail(absl::OkStatus());
    return;
  }
  absl::Status status = MakeError(ErrorReason::kTransferFailed,
                                  absl::StrCat("prefill worker ", peer_.name,
                                               " gave up: ", message.reason));
  if (WorthKeeping(message.code)) {
    FailKeeping(status);
  } else {
    Fail(status);
  }
}

void DecodeTransfer::OnFenceAck() {
  // Poll sees it, after what has landed.
  fence_acked_ = true;
}

void DecodeTransfer::OnArrival(TransportKind via, const PageArrival& arrival) {
  // A page may be written more than once until the fence: sent again after its
  // post expired, or over another transport. That must not change it.
  if (pages_.Add(arrival)) OnPageChanged(arrival.block);
  if (!arrival.status.ok()) {
    // The sender learns of it from its own completion and sends again.
    Sometimes<"a page was refused where it arrived">();
    context_->probe->PageRefused(arrival.status.message());
    return;
  }
  if (state_ == DecodeState::kMapped) Move(state_, DecodeState::kReceiving);
  if (state_ != DecodeState::kReceiving) return;
  lease_.Refresh();
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
  for (auto at = checked_chunks_.begin(); at != checked_chunks_.end(); ++at) {
    const ChunkDone& chunk = at->second;
    const int blocks = static_cast<int>(chunk.checksums.size());
    for (int i = 0; i < blocks; ++i) {
      if (blocks_[chunk.first_prompt_block + i].ref() != block) continue;
      std::fill_n(verified_.begin() + chunk.first_prompt_block, blocks, false);
      NackSpoiled(chunk);
      checked_chunks_.erase(at);
      return;
    }
  }
}

void DecodeTransfer::NackSpoiled(const ChunkDone& chunk) {
  for (size_t i = 0; i < chunk.checksums.size(); ++i) {
    pages_.Forget(blocks_[chunk.first_prompt_block + i].ref());
  }
  Nack(chunk, "a page was written over");
}

void DecodeTransfer::Nack(const ChunkDone& chunk, const std::string& why) {
  Sometimes<"a chunk was asked for again">();
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
  const int64_t first = message.first_prompt_block;
  const int64_t last = first + static_cast<int64_t>(message.checksums.size());
  if (first < have_blocks_ || last > static_cast<int64_t>(blocks_.size())) {
    Fail(MakeError(ErrorReason::kTransferFailed,
                   absl::StrCat("chunk names prompt blocks ", first, " to ",
                                last - 1, ", which were not granted")));
    return true;
  }
  bool spoiled = false;
  for (int64_t at = first; at < last; ++at) {
    switch (pages_.StateOf(blocks_[at].ref())) {
      case ArrivedPages::State::kMissing:
        return false;
      case ArrivedPages::State::kSpoiled:
        spoiled = true;
        break;
      case ArrivedPages::State::kThere:
        if (pages_.Checksum(blocks_[at].ref()) ==
            message.checksums[at - first]) {
          break;
        }
        Sometimes<"a page was not the one that was announced">();
        Nack(message, "checksum");
        return true;
    }
  }
  if (spoiled) {
    NackSpoiled(message);
    return true;
  }
  for (int64_t at = first; at < last; ++at) {
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
  unsettled_->insert(id_);
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
      manifest.content != context_->content ||
      manifest.numerics != context_->numerics) {
    return mismatch("layout, model or numerics");
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
    if (pages_.Checksum(blocks_[moved.prompt_block].ref()) != moved.checksum) {
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
  auto usable = [&](int block) {
    return verified_[block] &&
           (block < have_blocks_ || pages_.StateOf(blocks_[block].ref()) ==
                                        ArrivedPages::State::kThere);
  };
  int blocks = 0;
  while (blocks < static_cast<int>(verified_.size()) && usable(blocks)) {
    ++blocks;
  }
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

void DecodeTransfer::TakeCreditBack() {
  CHECK(holds_credit());
  FailKeeping(MakeError(ErrorReason::kQueueFull,
                        "its blocks went to an earlier request, which could "
                        "not go on without",
                        "", absl::Seconds(1)));
}

void DecodeTransfer::CountBlocks(BlockCensus& census) const {
  census.Add(blocks_);
  census.Add(growth_);
  census.Add(pins_);
  if (state_ == DecodeState::kQuarantined) {
    for (const TransferPin& pin : pins_) census.AddQuarantined(pin.ref());
  }
  if (answers_ != nullptr) answers_->CountBlocks(census);
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
