#include "common/worker/core/pull_source.h"

#include "common/base/check.h"
#include "common/base/sometimes.h"

namespace penstock {
namespace {

// Over all transports.
constexpr int kMostTries = 3;

}  // namespace

PullSource::PullSource(const WorkerContext* context) : context_(context) {}

bool PullSource::IsOurs(const PullAsk& ask) const {
  return ask.layout == context_->layout.id() &&
         ask.content == context_->content && ask.numerics == context_->numerics;
}

void PullSource::OnAsk(const WorkerKey& peer, const PullAsk& ask) {
  const Key key{peer, ask.transfer};
  if (sendings_.contains(key)) return;
  Sending sending;
  if (IsOurs(ask) && sendings_.size() < kMostPulls) {
    for (const PullAsk::Page& page : ask.pages) {
      BlockHold hold =
          context_->cache->Hold({page.hash, page.parent, page.tokens});
      if (!hold) break;
      sending.pins.push_back(context_->pool->Pin(hold.ref()));
      sending.writes.push_back(
          {hold.ref().index, page.into, {0, context_->layout.layers}});
      sending.holds.push_back(std::move(hold));
    }
  }
  if (sending.holds.empty() ||
      !sending.routes.Connect(context_->transports, peer, ask.addresses).ok()) {
    context_->peers->Send(peer, PullDone{ask.transfer, {}});
    return;
  }
  Post(key, sendings_[key] = std::move(sending));
}

void PullSource::Post(const Key& key, Sending& sending) {
  ++sending.tries;
  sending.transport = &sending.routes.best();
  const uint64_t bytes = sending.writes.size() * context_->layout.block_bytes();
  sending.post = sending.transport->Post(
      key.first, key.second, sending.writes,
      context_->clock->Now() + TimeToPost(context_->options, bytes));
  posts_[{sending.transport, sending.post}] = key;
}

void PullSource::OnCompletion(KvTransport* transport,
                              const PostCompletion& completion) {
  auto post = posts_.find({transport, completion.post});
  if (post == posts_.end()) return;
  const Key key = post->second;
  posts_.erase(post);
  auto it = sendings_.find(key);
  CHECK(it != sendings_.end());
  Sending& sending = it->second;
  if (!completion.status.ok() && !sending.renounced &&
      sending.tries < kMostTries) {
    Sometimes<"pages for a puller were written again">();
    sending.routes.Failed(transport);
    Post(key, sending);
    return;
  }
  if (!sending.renounced) {
    PullDone done{key.second, {}};
    if (completion.status.ok()) done.checksums = completion.checksums;
    context_->peers->Send(key.first, std::move(done));
  }
  sendings_.erase(it);
}

void PullSource::Renounce(Sending& sending) {
  if (std::exchange(sending.renounced, true)) return;
  sending.transport->Cancel(sending.post);
}

void PullSource::OnAbort(const WorkerKey& peer, TransferId transfer) {
  auto it = sendings_.find({peer, transfer});
  if (it != sendings_.end()) Renounce(it->second);
}

void PullSource::OnPeerLost(const WorkerKey& peer) {
  for (auto& [key, sending] : sendings_) {
    if (key.first == peer) Renounce(sending);
  }
}

void PullSource::CountBlocks(BlockCensus& census) const {
  for (const auto& [key, sending] : sendings_) {
    census.Add(sending.holds);
    census.Add(sending.pins);
  }
}

}  // namespace penstock
