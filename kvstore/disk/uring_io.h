#pragma once

#include <liburing.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/status/statusor.h"
#include "kvstore/disk/disk_io.h"
#include "kvstore/disk/thread_io.h"

namespace penstock {

// Reads and writes through io_uring: one thread that submits what came and
// hears what ended. Calls, for which the ring is of no use, run in a thread of
// their own.
class UringIo : public DiskIo {
 public:
  // UNAVAILABLE: the system has no io_uring, or does not permit it here.
  static absl::StatusOr<std::unique_ptr<DiskIo>> Create();
  ~UringIo() override { Finish(); }

  void Finish() final;

  void Submit(Task task) override;
  Kind kind() const override { return Kind::kUring; }

 private:
  // Transfers in the ring at once.
  static constexpr unsigned kDepth = 64;

  struct Flight {
    Transfer transfer;
    std::function<void(absl::Status)> done;
  };

  UringIo(const io_uring& ring, int bell);

  void Run();
  // False: the ring is full.
  bool Start(Flight* flight);
  void WatchBell();
  void OnEnd(Flight* flight, int result);
  void Take();

  // The ring's thread.
  io_uring ring_;
  std::deque<std::unique_ptr<Flight>> waiting_;
  unsigned flying_ = 0;
  bool watching_ = false;

  const int bell_;  // an eventfd
  std::mutex mutex_;
  std::deque<std::unique_ptr<Flight>> submitted_;  // guarded by mutex_
  uint64_t unfinished_ = 0;  // guarded by mutex_: transfers that came
  bool stop_ = false;        // guarded by mutex_
  std::unique_ptr<ThreadIo> calls_;
  std::thread thread_;
};

}  // namespace penstock
