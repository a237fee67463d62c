#include "kvstore/disk/uring_io.h"

#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace penstock {

absl::StatusOr<std::unique_ptr<DiskIo>> UringIo::Create() {
  io_uring ring;
  // One entry more, for the bell.
  if (int error = io_uring_queue_init(kDepth + 1, &ring, 0); error != 0) {
    return absl::UnavailableError(
        absl::StrCat("io_uring: ", std::strerror(-error)));
  }
  const int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (bell < 0) {
    const int error = errno;
    io_uring_queue_exit(&ring);
    return absl::UnavailableError(
        absl::StrCat("eventfd: ", std::strerror(error)));
  }
  return std::unique_ptr<DiskIo>(new UringIo(ring, bell));
}

UringIo::UringIo(const io_uring& ring, int bell)
    : ring_(ring), bell_(bell), calls_(std::make_unique<ThreadIo>(1)) {
  thread_ = std::thread([this] { Run(); });
}

void UringIo::Finish() {
  if (!thread_.joinable()) return;
  // Calls may submit transfers, and the ends of transfers calls: what is left
  // of either ends in the other's time.
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  eventfd_write(bell_, 1);
  thread_.join();
  calls_->Finish();
  io_uring_queue_exit(&ring_);
  close(bell_);
}

void UringIo::Submit(Task task) {
  auto* transfer = std::get_if<Transfer>(&task.work);
  if (transfer == nullptr) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ++unfinished_;
    }
    task.done = [this, done = std::move(task.done)](absl::Status status) {
      done(std::move(status));
      {
        std::lock_guard<std::mutex> lock(mutex_);
        --unfinished_;
      }
      eventfd_write(bell_, 1);
    };
    calls_->Submit(std::move(task));
    return;
  }
  auto flight = std::make_unique<Flight>(
      Flight{std::move(*transfer), std::move(task.done)});
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++unfinished_;
    submitted_.push_back(std::move(flight));
  }
  eventfd_write(bell_, 1);
}

void UringIo::WatchBell() {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  if (entry == nullptr) return;
  io_uring_prep_poll_add(entry, bell_, POLLIN);
  io_uring_sqe_set_data(entry, nullptr);
  watching_ = true;
}

bool UringIo::Start(Flight* flight) {
  io_uring_sqe* entry = flying_ < kDepth ? io_uring_get_sqe(&ring_) : nullptr;
  if (entry == nullptr) return false;
  const Transfer& transfer = flight->transfer;
  const auto count =
      static_cast<unsigned>(std::min<size_t>(transfer.pieces.size(), IOV_MAX));
  if (transfer.write) {
    io_uring_prep_writev(entry, transfer.fd, transfer.pieces.data(), count,
                         transfer.offset);
  } else {
    io_uring_prep_readv(entry, transfer.fd, transfer.pieces.data(), count,
                        transfer.offset);
  }
  io_uring_sqe_set_data(entry, flight);
  ++flying_;
  return true;
}

void UringIo::Take() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::move(submitted_.begin(), submitted_.end(), std::back_inserter(waiting_));
  submitted_.clear();
}

void UringIo::OnEnd(Flight* flight, int result) {
  std::unique_ptr<Flight> ended(flight);
  --flying_;
  absl::Status status;
  if (result == -EINTR || result == -EAGAIN) {
    result = 0;
  } else if (result < 0) {
    status = DiskError(-result, flight->transfer.write ? "writing" : "reading");
  } else if (result == 0 && !flight->transfer.pieces.empty()) {
    status = absl::DataLossError("the file ends too early");
  } else {
    Advance(flight->transfer, result);
  }
  if (status.ok() && !flight->transfer.pieces.empty()) {
    waiting_.push_front(std::move(ended));
    return;
  }
  flight->done(std::move(status));
  ended.reset();
  std::lock_guard<std::mutex> lock(mutex_);
  --unfinished_;
}

void UringIo::Run() {
  while (true) {
    Take();
    if (!watching_) WatchBell();
    while (!waiting_.empty() && Start(waiting_.front().get())) {
      waiting_.front().release();  // the ring's until its end
      waiting_.pop_front();
    }
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (stop_ && unfinished_ == 0) return;
    }
    const int waited = io_uring_submit_and_wait(&ring_, 1);
    CHECK(waited >= 0 || waited == -EINTR || waited == -EAGAIN ||
          waited == -EBUSY)
        << "io_uring: " << std::strerror(-waited);
    io_uring_cqe* end = nullptr;
    while (io_uring_peek_cqe(&ring_, &end) == 0) {
      auto* flight = static_cast<Flight*>(io_uring_cqe_get_data(end));
      const int result = end->res;
      io_uring_cqe_seen(&ring_, end);
      if (flight != nullptr) {
        OnEnd(flight, result);
        continue;
      }
      watching_ = false;
      eventfd_t rings;
      eventfd_read(bell_, &rings);
    }
  }
}

}  // namespace penstock
