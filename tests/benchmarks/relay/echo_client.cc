#include "tests/benchmarks/relay/echo_client.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/env/real/monotonic_clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/leg_wire.h"
#include "common/runtime/loop_thread.h"

namespace penstock {
namespace {

std::string OneToken() {
  TokenFrame frame;
  frame.attempt = AttemptId(1);
  frame.first_index = 100;
  frame.tokens.resize(1);
  frame.tokens[0].id = 1;
  frame.tokens[0].text = " token";
  return EncodeLegEvent(std::move(frame));
}

class Load {
 public:
  explicit Load(const EchoLoad& load)
      : load_(load), message_(OneToken()), loop_(clock_, {"echo-load"}) {}

  absl::Status Run() {
    channel_ = RpcChannel::Open(load_.server);
    next_tick_ = clock_.Now();
    loop_.Start({});
    loop_.RunAndWait([this] {
      for (int i = 0; i < load_.streams; ++i) {
        streams_.push_back(channel_->Start(
            "/echo/Echo", std::make_unique<Handler>(this), loop_.inbox()));
      }
      Tick();
    });
    over_.WaitForNotification();
    loop_.RunAndWait([this] {
      for (auto& stream : streams_) stream->Close(absl::OkStatus());
    });
    loop_.Stop();
    return status_;
  }

 private:
  class Handler : public StreamHandler {
   public:
    explicit Handler(Load* load) : load_(load) {}
    void OnMessage(std::string) override {
      if (++load_->received_ == load_->load_.messages) load_->End({});
    }
    void OnClosed(const absl::Status& status) override {
      load_->End(absl::UnavailableError(status.message()));
    }

   private:
    Load* const load_;
  };

  void End(const absl::Status& status) {
    if (over_.HasBeenNotified()) return;
    status_ = status;
    over_.Notify();
  }

  void Tick() {
    next_tick_ = std::max(next_tick_ + load_.tick, clock_.Now());
    for (auto& stream : streams_) {
      if (sent_ == load_.messages) return;
      stream->Send(message_);
      ++sent_;
    }
    loop_.timers().Schedule(next_tick_, [this] { Tick(); });
  }

  const EchoLoad load_;
  const std::string message_;
  MonotonicClock clock_;
  LoopThread loop_;
  std::unique_ptr<RpcChannel> channel_;
  std::vector<std::shared_ptr<Stream>> streams_;
  Instant next_tick_;
  int64_t sent_ = 0;
  int64_t received_ = 0;
  absl::Status status_;
  absl::Notification over_;
};

}  // namespace

absl::Status RunEchoLoad(const EchoLoad& load) { return Load(load).Run(); }

}  // namespace penstock
