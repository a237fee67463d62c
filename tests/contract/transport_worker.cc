#include "tests/contract/transport_worker.h"

#include <chrono>
#include <utility>

#include "common/base/status_macros.h"
#include "common/env/real/entropy.h"
#include "common/transfer/inproc/inproc_transport.h"
#include "common/transfer/shm/shm_transport.h"
#include "common/transfer/tcp/tcp_transport.h"

namespace penstock {
namespace {

absl::StatusOr<std::unique_ptr<KvTransport>> Make(
    const TransportOptions& base, const TransportWorker::Options& options) {
  switch (options.kind) {
    case TransportKind::kInproc:
      return InprocTransport::Create({.worker = base});
    case TransportKind::kShm:
      return ShmTransport::Create({.worker = base,
                                   .listen = options.listen,
                                   .limits = {.handshake = options.handshake,
                                              .silence = options.silence}});
    case TransportKind::kTcp:
      return TcpTransport::Create(
          {.worker = base,
           .listen = options.listen.empty() ? "127.0.0.1:0" : options.listen,
           .limits = {.handshake = options.handshake,
                      .silence = options.silence}});
  }
  return absl::InternalError("no such kind");
}

}  // namespace

KvLayout SmallLayout() {
  KvLayout layout;
  layout.layers = 4;
  layout.kv_heads = 1;
  layout.head_dim = 8;
  layout.value_dim = 8;
  return layout;
}

absl::StatusOr<std::unique_ptr<TransportWorker>> TransportWorker::Create(
    const Options& options) {
  std::unique_ptr<TransportWorker> worker(new TransportWorker(options));
  ASSIGN_OR_RETURN(
      worker->memory_,
      ArenaMemory::Create(options.blocks * options.layout.block_bytes()));
  worker->pages_ =
      std::make_unique<ArenaPages>(worker->memory_->arena(), options.layout);
  TransportOptions base;
  base.self = worker->key_;
  base.arena = worker->memory_->arena();
  base.layout = options.layout;
  base.hasher = BlockHasher(HashSecret(options.cluster_key));
  base.clock = &worker->clock_;
  base.entropy = DrawEntropy;
  base.faults = worker->faults_.get();
  base.wake = [w = worker.get()] {
    std::lock_guard lock(w->mutex_);
    ++w->wakes_;
    w->woken_.notify_all();
  };
  ASSIGN_OR_RETURN(worker->transport_, Make(base, options));
  return worker;
}

TransportWorker::TransportWorker(const Options& options)
    : key_{options.name, options.incarnation}, faults_(options.faults) {}

absl::Span<uint8_t> TransportWorker::Block(BlockIndex block) const {
  return pages_->Page(block, {0, pages_->layout().layers})[0];
}

absl::Span<uint8_t> TransportWorker::Layer(BlockIndex block, int layer) const {
  return pages_->Page(block, {layer, layer + 1})[0];
}

void TransportWorker::Fill(BlockIndex block, uint8_t seed) {
  absl::Span<uint8_t> bytes = Block(block);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(seed + i * 7 + (i >> 8));
  }
}

bool TransportWorker::Await(const std::function<bool()>& done,
                            absl::Duration limit) {
  auto end = std::chrono::steady_clock::now() + absl::ToChronoSeconds(limit);
  while (true) {
    uint64_t seen;
    {
      std::lock_guard lock(mutex_);
      seen = wakes_;
    }
    if (done()) return true;
    std::unique_lock lock(mutex_);
    if (!woken_.wait_until(lock, end, [&] { return wakes_ != seen; })) {
      return false;
    }
  }
}

absl::StatusOr<PostCompletion> TransportWorker::AwaitCompletion() {
  std::optional<PostCompletion> completion;
  if (Await([&] {
        completion = transport_->PollCompletion();
        return completion.has_value();
      })) {
    return *std::move(completion);
  }
  return absl::DeadlineExceededError("no completion came");
}

absl::StatusOr<PageArrival> TransportWorker::AwaitArrival() {
  std::optional<PageArrival> arrival;
  if (Await([&] {
        arrival = transport_->PollArrival();
        return arrival.has_value();
      })) {
    return *std::move(arrival);
  }
  return absl::DeadlineExceededError("no page arrived");
}

bool TransportWorker::AwaitFence(TransferId transfer) {
  return Await([&] { return transport_->Revoke(transfer); });
}

}  // namespace penstock
