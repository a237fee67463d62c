#include "common/transfer/bench/measure_transfer.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/env/real/entropy.h"
#include "common/env/real/monotonic_clock.h"
#include "common/transfer/arena/arena_memory.h"
#include "common/transfer/inproc/inproc_transport.h"
#include "common/transfer/shm/shm_transport.h"
#include "common/transfer/tcp/tcp_transport.h"

namespace penstock {
namespace {

constexpr TransferId kTransfer{RequestId(1), AttemptId(1)};
constexpr uint32_t kGeneration = 1;

absl::StatusOr<std::unique_ptr<KvTransport>> Make(
    TransportKind kind, const TransportOptions& worker, InprocHub* hub) {
  switch (kind) {
    case TransportKind::kInproc:
      return InprocTransport::Create({.worker = worker, .hub = hub});
    case TransportKind::kShm:
      return ShmTransport::Create({.worker = worker});
    case TransportKind::kTcp:
      return TcpTransport::Create({.worker = worker});
  }
  return absl::InvalidArgumentError("no such transport");
}

// One end: an arena and a transport over it.
class End {
 public:
  static absl::StatusOr<std::unique_ptr<End>> Create(const TransferBench& bench,
                                                     std::string name,
                                                     InprocHub* hub) {
    std::unique_ptr<End> end(new End(std::move(name)));
    ASSIGN_OR_RETURN(
        end->memory_,
        ArenaMemory::Create(bench.blocks * bench.layout.block_bytes()));
    TransportOptions options;
    options.self = end->key_;
    options.arena = end->memory_->arena();
    options.layout = bench.layout;
    options.clock = &end->clock_;
    options.entropy = DrawEntropy;
    options.wake = [e = end.get()] {
      std::lock_guard lock(e->mutex_);
      e->news_ = true;
      e->woken_.notify_one();
    };
    ASSIGN_OR_RETURN(end->transport_, Make(bench.kind, options, hub));
    return end;
  }

  const WorkerKey& key() const { return key_; }
  const Clock& clock() const { return clock_; }
  KvTransport& transport() { return *transport_; }
  absl::Span<uint8_t> bytes() { return memory_->arena().bytes; }

  PostCompletion AwaitCompletion() {
    while (true) {
      if (auto done = transport_->PollCompletion()) return *std::move(done);
      std::unique_lock lock(mutex_);
      woken_.wait(lock, [this] { return news_; });
      news_ = false;
    }
  }

 private:
  explicit End(std::string name) : key_{std::move(name), DrawIncarnation()} {}

  const WorkerKey key_;
  const MonotonicClock clock_;
  std::unique_ptr<ArenaMemory> memory_;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool news_ = false;  // guarded by mutex_
  // Last: it calls back until it is gone.
  std::unique_ptr<KvTransport> transport_;
};

// Posts, waits, and forgets the arrivals.
absl::Status Move(End& from, End& to, const std::vector<PageWrite>& writes) {
  from.transport().Post(to.key(), kTransfer, writes, Instant::Infinite());
  PostCompletion done = from.AwaitCompletion();
  while (to.transport().PollArrival()) continue;
  return done.status;
}

absl::StatusOr<absl::Duration> MedianLatency(End& from, End& to, int pings) {
  std::vector<absl::Duration> times;
  for (int i = 0; i < pings; ++i) {
    Instant start = from.clock().Now();
    RETURN_IF_ERROR(Move(from, to, {{0, {0, kGeneration}, {0, 1}}}));
    times.push_back(from.clock().Now() - start);
  }
  auto middle = times.begin() + times.size() / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace

absl::StatusOr<TransferFigures> MeasureTransfer(const TransferBench& bench) {
  if (bench.blocks < 1 || bench.repeats < 1 || bench.pings < 1) {
    return absl::InvalidArgumentError(
        "blocks, repeats and pings must be at least 1");
  }
  InprocHub hub;
  ASSIGN_OR_RETURN(auto to, End::Create(bench, "to", &hub));
  ASSIGN_OR_RETURN(auto from, End::Create(bench, "from", &hub));
  std::fill(from->bytes().begin(), from->bytes().end(), 0x5a);
  RETURN_IF_ERROR(
      from->transport().Connect(to->key(), to->transport().Describe()));
  std::vector<BlockRef> blocks;
  std::vector<PageWrite> writes;
  for (BlockIndex i = 0; i < bench.blocks; ++i) {
    blocks.push_back({i, kGeneration});
    writes.push_back({i, blocks.back(), {0, bench.layout.layers}});
  }
  to->transport().PrepareReceive(kTransfer, blocks);
  // The first touches the destination's memory and connects.
  RETURN_IF_ERROR(Move(*from, *to, writes));

  TransferFigures figures;
  Instant start = from->clock().Now();
  for (int i = 0; i < bench.repeats; ++i) {
    RETURN_IF_ERROR(Move(*from, *to, writes));
  }
  absl::Duration elapsed = from->clock().Now() - start;
  figures.bytes =
      uint64_t{1} * bench.repeats * bench.blocks * bench.layout.block_bytes();
  figures.bytes_per_second = figures.bytes / absl::ToDoubleSeconds(elapsed);
  ASSIGN_OR_RETURN(figures.median_latency,
                   MedianLatency(*from, *to, bench.pings));
  return figures;
}

}  // namespace penstock
