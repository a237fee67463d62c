#include "common/transfer/post_table.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace penstock {

void PostTable::Add(Post post) {
  PostId id = post.id;
  Live live;
  live.checksums.resize(post.writes.size());
  live.post = std::move(post);
  auto [at, added] = posts_.emplace(id, std::move(live));
  CHECK(added) << "post " << id << " is there already";
  deadlines_.emplace(at->second.post.deadline, id);
  if (at->second.post.writes.empty()) return Complete(at);
  unsent_[at->second.post.peer].push_back(id);
}

std::optional<PostTable::Write> PostTable::Next(const WorkerKey& peer) {
  auto queue = unsent_.find(peer);
  if (queue == unsent_.end()) return std::nullopt;
  PostId id = queue->second.front();
  Live& live = posts_.at(id);
  Write write{id, live.next, live.post.transfer, live.post.writes[live.next]};
  ++live.in_flight;
  if (++live.next == live.post.writes.size()) {
    queue->second.pop_front();
    if (queue->second.empty()) unsent_.erase(queue);
  }
  return write;
}

void PostTable::SetChecksum(const Write& write, uint64_t checksum) {
  posts_.at(write.post).checksums[write.index] = checksum;
}

void PostTable::Acked(PostId post, uint64_t bytes,
                      const absl::Status& verdict) {
  auto at = posts_.find(post);
  if (at == posts_.end()) return;
  Live& live = at->second;
  CHECK(live.in_flight > 0);
  --live.in_flight;
  if (verdict.ok()) {
    live.bytes += bytes;
  } else {
    Stop(live, verdict);
  }
  CompleteIfDone(at);
}

void PostTable::Cancel(PostId post) {
  auto at = posts_.find(post);
  if (at == posts_.end()) return;
  Live& live = at->second;
  if (live.next < live.post.writes.size()) {
    Stop(live, absl::CancelledError("the post was cancelled"));
  }
  CompleteIfDone(at);
}

void PostTable::Fail(const WorkerKey& peer, const absl::Status& status) {
  for (auto at = posts_.begin(); at != posts_.end();) {
    auto current = at++;
    if (current->second.post.peer != peer) continue;
    Stop(current->second, status);
    Complete(current);
  }
}

std::set<WorkerKey> PostTable::Expire(Instant now) {
  std::set<WorkerKey> peers;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    auto at = posts_.find(deadlines_.begin()->second);
    Live& live = at->second;
    if (live.in_flight > 0) peers.insert(live.post.peer);
    Stop(live, absl::DeadlineExceededError(absl::StrCat(
                   "not written to ", live.post.peer.name, " in time")));
    Complete(at);
  }
  return peers;
}

Instant PostTable::NextDeadline() const {
  return deadlines_.empty() ? Instant::Infinite() : deadlines_.begin()->first;
}

std::vector<PostCompletion> PostTable::TakeCompletions() {
  return std::exchange(completions_, {});
}

void PostTable::Stop(Live& live, absl::Status status) {
  if (live.status.ok()) live.status = std::move(status);
  if (live.next == live.post.writes.size()) return;
  live.next = live.post.writes.size();
  auto queue = unsent_.find(live.post.peer);
  std::erase(queue->second, live.post.id);
  if (queue->second.empty()) unsent_.erase(queue);
}

void PostTable::CompleteIfDone(Posts::iterator at) {
  if (at->second.next == at->second.post.writes.size() &&
      at->second.in_flight == 0) {
    Complete(at);
  }
}

void PostTable::Complete(Posts::iterator at) {
  Live& live = at->second;
  deadlines_.erase({live.post.deadline, live.post.id});
  completions_.push_back({live.post.id, live.post.transfer,
                          std::move(live.status), live.bytes,
                          std::move(live.checksums)});
  posts_.erase(at);
}

}  // namespace penstock
