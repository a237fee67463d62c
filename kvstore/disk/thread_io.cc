#include "kvstore/disk/thread_io.h"

#include <limits.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace penstock {
namespace {

absl::Status RunTransfer(DiskIo::Transfer& transfer) {
  while (!transfer.pieces.empty()) {
    const int count =
        static_cast<int>(std::min<size_t>(transfer.pieces.size(), IOV_MAX));
    const auto offset = static_cast<off_t>(transfer.offset);
    const ssize_t moved =
        transfer.write
            ? pwritev(transfer.fd, transfer.pieces.data(), count, offset)
            : preadv(transfer.fd, transfer.pieces.data(), count, offset);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) {
      return DiskError(errno, transfer.write ? "writing" : "reading");
    }
    if (moved == 0) return absl::DataLossError("the file ends too early");
    Advance(transfer, moved);
  }
  return absl::OkStatus();
}

// What the task captured has ended when this returns.
void RunTask(DiskIo::Task task) {
  auto* transfer = std::get_if<DiskIo::Transfer>(&task.work);
  task.done(transfer != nullptr ? RunTransfer(*transfer)
                                : std::get<DiskIo::Call>(task.work)());
}

}  // namespace

ThreadIo::ThreadIo(int threads) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { Run(); });
  }
}

void ThreadIo::Finish() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void ThreadIo::Submit(Task task) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void ThreadIo::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(
        lock, [this] { return !tasks_.empty() || (stop_ && running_ == 0); });
    if (tasks_.empty()) return;
    Task next = std::move(tasks_.front());
    tasks_.pop_front();
    ++running_;
    lock.unlock();
    RunTask(std::move(next));
    lock.lock();
    // The last one to end lets the others see that nothing more comes.
    if (--running_ == 0 && stop_ && tasks_.empty()) changed_.notify_all();
  }
}

}  // namespace penstock
