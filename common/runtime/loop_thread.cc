#include "common/runtime/loop_thread.h"

#include <pthread.h>

#include <future>
#include <utility>

#include "common/base/check.h"

namespace penstock {
namespace {

absl::Duration Until(Instant deadline, Instant now) {
  if (deadline == Instant::Infinite()) return absl::InfiniteDuration();
  return deadline - now;
}

}  // namespace

LoopThread::LoopThread(const Clock& clock, Options options)
    : clock_(clock),
      options_(std::move(options)),
      inbox_(std::make_shared<Inbox>(options_.inbox_capacity)) {}

LoopThread::~LoopThread() { Stop(); }

void LoopThread::Start(std::function<void()> tick) {
  CHECK(!thread_.joinable()) << "loop " << options_.name << " runs already";
  tick_ = std::move(tick);
  thread_ = std::thread([this] { Run(); });
}

void LoopThread::Stop() {
  if (!thread_.joinable()) return;
  inbox_->Post([this] { stopping_ = true; });
  inbox_->Close();
  thread_.join();
  inbox_->Take(absl::ZeroDuration());
}

void LoopThread::RunAndWait(Inbox::Task task) {
  CHECK(std::this_thread::get_id() != thread_.get_id())
      << "waiting for the own loop " << options_.name;
  std::promise<void> done;
  const bool posted = inbox_->Post([&task, &done] {
    task();
    done.set_value();
  });
  CHECK(posted) << "loop " << options_.name << " has stopped";
  done.get_future().wait();
}

void LoopThread::Run() {
  pthread_setname_np(pthread_self(), options_.name.substr(0, 15).c_str());
  while (!stopping_) {
    const absl::Duration wait = Until(timers_.NextDeadline(), clock_.Now());
    for (Inbox::Task& task : inbox_->Take(wait)) {
      task();
      // Captures go before the next task runs.
      task = nullptr;
    }
    timers_.RunDue(clock_.Now());
    if (tick_) tick_();
  }
}

}  // namespace penstock
