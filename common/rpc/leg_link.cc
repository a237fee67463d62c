#include "common/rpc/leg_link.h"

#include <cstdint>
#include <map>
#include <utility>

#include "common/rpc/channel.h"
#include "common/rpc/status_proto.h"
#include "common/rpc/wire_check.h"
#include "protos/worker.pb.h"

namespace penstock {
namespace {

// All legs of a worker stop together when this is exceeded.
constexpr StreamLimits kLimits{1 << 16, 64 << 20};

// What a broken connection means to a leg. Why it broke is not the leg's.
absl::Status Lost(const absl::Status& status) {
  return absl::UnavailableError(status.ok() ? "the worker ended its stream"
                                            : status.message());
}

// One gRPC stream and the legs on it. Lives until it is retired and its last
// leg has ended.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(std::shared_ptr<Inbox> inbox)
      : inbox_(std::move(inbox)) {}

  void Connect(RpcChannel& channel) {
    stream_ = channel.Start(kLegsMethod,
                            std::make_unique<Handler>(shared_from_this()),
                            inbox_, kLimits);
  }
  bool broken() const { return stream_ == nullptr; }

  std::shared_ptr<Stream> Start(LegKind kind, std::string request,
                                std::unique_ptr<StreamHandler> handler) {
    const uint64_t leg = next_leg_++;
    legs_.emplace(leg, std::move(handler));
    v1::LegCommands commands;
    v1::LegCommand* command = commands.add_commands();
    command->set_leg(leg);
    (kind == LegKind::kPrefill ? *command->mutable_prefill()
                               : *command->mutable_decode()) =
        std::move(request);
    stream_->Send(commands.SerializeAsString());
    return std::make_shared<Leg>(shared_from_this(), leg);
  }

  // No leg is started any more.
  void Retire() {
    retired_ = true;
    CloseWhenIdle();
  }

 private:
  class Handler : public StreamHandler {
   public:
    explicit Handler(std::shared_ptr<Connection> connection)
        : connection_(std::move(connection)) {}
    void OnMessage(std::string message) override {
      connection_->OnReports(message);
    }
    void OnClosed(const absl::Status& status) override {
      connection_->Break(Lost(status));
    }

   private:
    const std::shared_ptr<Connection> connection_;
  };

  class Leg : public Stream {
   public:
    Leg(std::shared_ptr<Connection> connection, uint64_t leg)
        : connection_(std::move(connection)), leg_(leg) {}
    void Send(std::string) override {}
    void SendHeaders(Metadata) override {}
    void Close(const absl::Status& status) override {
      if (!status.ok()) connection_->Cancel(leg_, status);
    }

   private:
    const std::shared_ptr<Connection> connection_;
    const uint64_t leg_;
  };

  void Cancel(uint64_t leg, const absl::Status& status) {
    if (!legs_.contains(leg)) return;
    v1::LegCommands commands;
    v1::LegCommand* command = commands.add_commands();
    command->set_leg(leg);
    command->mutable_cancel();
    stream_->Send(commands.SerializeAsString());
    // Never from inside the call.
    inbox_->Post([self = shared_from_this(), leg,
                  why = absl::CancelledError(status.message())] {
      self->End(leg, why);
    });
  }

  void OnReports(const std::string& bytes) {
    v1::LegReports reports;
    absl::Status parsed = ParseMessage(bytes, &reports);
    for (v1::LegReport& report : *reports.mutable_reports()) {
      // A leg that was cancelled may still be reported on.
      const auto leg = legs_.find(report.leg());
      switch (report.report_case()) {
        case v1::LegReport::kEvent:
          if (leg == legs_.end()) break;
          leg->second->OnMessage(std::move(*report.mutable_event()));
          break;
        case v1::LegReport::kEnd:
          End(report.leg(), FromProto(report.end()));
          break;
        case v1::LegReport::REPORT_NOT_SET:
          parsed = Refuse("report", "is missing or unknown");
          break;
      }
    }
    if (parsed.ok()) return;
    if (stream_ != nullptr) stream_->Close(parsed);
    Break(Lost(parsed));
  }

  void End(uint64_t leg, const absl::Status& status) {
    auto node = legs_.extract(leg);
    if (node.empty()) return;
    node.mapped()->OnClosed(status);
    CloseWhenIdle();
  }

  void Break(const absl::Status& status) {
    stream_ = nullptr;
    while (!legs_.empty()) End(legs_.begin()->first, status);
  }

  void CloseWhenIdle() {
    if (!retired_ || !legs_.empty() || stream_ == nullptr) return;
    std::exchange(stream_, nullptr)->Close(absl::OkStatus());
  }

  const std::shared_ptr<Inbox> inbox_;
  std::shared_ptr<Stream> stream_;  // null: broken, or closed
  std::map<uint64_t, std::unique_ptr<StreamHandler>> legs_;
  uint64_t next_leg_ = 1;
  bool retired_ = false;
};

class Link : public LegLink {
 public:
  Link(const std::string& address, std::shared_ptr<Inbox> inbox)
      : channel_(RpcChannel::Open(address)), inbox_(std::move(inbox)) {}
  ~Link() override {
    if (connection_ != nullptr) connection_->Retire();
  }

  std::shared_ptr<Stream> Start(
      LegKind kind, std::string request,
      std::unique_ptr<StreamHandler> handler) override {
    if (connection_ == nullptr || connection_->broken()) {
      connection_ = std::make_shared<Connection>(inbox_);
      connection_->Connect(*channel_);
    }
    return connection_->Start(kind, std::move(request), std::move(handler));
  }

 private:
  const std::unique_ptr<RpcChannel> channel_;
  const std::shared_ptr<Inbox> inbox_;
  std::shared_ptr<Connection> connection_;
};

}  // namespace

std::unique_ptr<LegLink> LegLink::Open(const std::string& address,
                                       std::shared_ptr<Inbox> inbox) {
  return std::make_unique<Link>(address, std::move(inbox));
}

}  // namespace penstock
