#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/env/real/monotonic_clock.h"
#include "common/transfer/arena/arena_memory.h"
#include "common/transfer/arena_pages.h"
#include "common/transfer/kv_transport.h"
#include "common/transfer/page_faults.h"

namespace penstock {

// The layout of most transport tests: 4 layers of 512 bytes.
KvLayout SmallLayout();

// One worker of a transport test: an arena, one transport over it, and a way
// to wait for news. The test's thread plays the engine.
class TransportWorker {
 public:
  struct Options {
    TransportKind kind = TransportKind::kInproc;
    std::string name;
    Incarnation incarnation;
    std::string cluster_key = "conformance";
    KvLayout layout = SmallLayout();
    int blocks = 16;
    // Where to listen, in the transport's own words; empty: its default.
    std::string listen;
    // From dial or accept to the verdict; not in process.
    absl::Duration handshake = absl::Seconds(60);
    // Until a peer that acknowledges nothing loses its connection; not in
    // process.
    absl::Duration silence = absl::Seconds(60);
    std::shared_ptr<PageFaults> faults;
  };

  static absl::StatusOr<std::unique_ptr<TransportWorker>> Create(
      const Options& options);

  const WorkerKey& key() const { return key_; }
  KvTransport& transport() { return *transport_; }
  const Clock& clock() const { return clock_; }
  absl::Span<uint8_t> Block(BlockIndex block) const;
  absl::Span<uint8_t> Layer(BlockIndex block, int layer) const;
  // Bytes that depend on the seed and the position.
  void Fill(BlockIndex block, uint8_t seed);

  // The transport goes, as when the worker's process dies; the arena stays.
  void Kill() { transport_.reset(); }
  // Another transport in its place, such as a decorator over it.
  void Wrap(const std::function<
            std::unique_ptr<KvTransport>(std::unique_ptr<KvTransport>)>& wrap) {
    transport_ = wrap(std::move(transport_));
  }

  // Waits, from wake to wake, until `done`; false: it took longer than any
  // test should. Does not spend the time in a loop.
  bool Await(const std::function<bool()>& done,
             absl::Duration limit = absl::Seconds(60));

  // The next of its kind; an error status (DEADLINE_EXCEEDED of the wait, not
  // of the post) if none comes.
  absl::StatusOr<PostCompletion> AwaitCompletion();
  absl::StatusOr<PageArrival> AwaitArrival();
  bool AwaitFence(TransferId transfer);

 private:
  explicit TransportWorker(const Options& options);

  const WorkerKey key_;
  const std::shared_ptr<PageFaults> faults_;
  const MonotonicClock clock_;
  std::unique_ptr<ArenaMemory> memory_;
  std::unique_ptr<ArenaPages> pages_;

  std::mutex mutex_;
  std::condition_variable woken_;
  uint64_t wakes_ = 0;  // guarded by mutex_

  // Last: it calls back until it is gone.
  std::unique_ptr<KvTransport> transport_;
};

}  // namespace penstock
