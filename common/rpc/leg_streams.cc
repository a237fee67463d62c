#include "common/rpc/leg_streams.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/status_proto.h"
#include "common/rpc/wire_check.h"
#include "protos/worker.pb.h"

namespace penstock {
namespace {

// What waits for the end of the loop's round, before it is sent anyway: a
// message must stay well below what a channel takes.
constexpr size_t kBatchBytes = 1 << 20;

// One router's stream. Legs may be written to by any thread; they begin and
// end on the loop.
class RouterLegs : public std::enable_shared_from_this<RouterLegs> {
 public:
  RouterLegs(std::shared_ptr<Stream> stream,
             std::shared_ptr<const WorkerMethods> methods,
             std::shared_ptr<Inbox> loop)
      : stream_(std::move(stream)),
        methods_(std::move(methods)),
        loop_(std::move(loop)) {}

  void OnCommands(const std::string& bytes);
  // The router is gone.
  void CancelAll();
  // The loop is: handlers are told nothing more.
  void Forget() { handlers_.clear(); }

 private:
  class Leg;

  // An error: the stream is of no use.
  absl::Status Obey(v1::LegCommand& command);
  absl::Status Begin(uint64_t number, const StreamMethod& method,
                     std::string request);
  void Cancel(uint64_t number);

  // Any thread. -----------------------------------------------------------
  void Send(uint64_t number, std::string event);
  void Close(uint64_t number, const absl::Status& status);
  void AddLocked(v1::LegReport report, size_t bytes);
  void FlushLocked();
  void EndRound();

  const std::shared_ptr<Stream> stream_;
  const std::shared_ptr<const WorkerMethods> methods_;
  const std::shared_ptr<Inbox> loop_;
  // By number; null while its method runs and when that wants to hear nothing.
  std::map<uint64_t, std::unique_ptr<StreamHandler>> handlers_;
  uint64_t last_ = 0;

  std::mutex mutex_;            // guards all below
  v1::LegReports reports_;      // of this round
  size_t bytes_ = 0;            // of these
  bool round_ends_ = false;     // EndRound is posted
  std::vector<uint64_t> over_;  // legs that were closed in this round
};

class RouterLegs::Leg : public Stream {
 public:
  Leg(std::shared_ptr<RouterLegs> router, uint64_t number)
      : router_(std::move(router)), number_(number) {}

  void Send(std::string message) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!over_) router_->Send(number_, std::move(message));
  }
  void SendHeaders(Metadata) override {}
  void Close(const absl::Status& status) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!std::exchange(over_, true)) router_->Close(number_, status);
  }

 private:
  const std::shared_ptr<RouterLegs> router_;
  const uint64_t number_;
  std::mutex mutex_;
  bool over_ = false;  // guarded by mutex_
};

void RouterLegs::OnCommands(const std::string& bytes) {
  v1::LegCommands commands;
  absl::Status status = ParseMessage(bytes, &commands);
  for (v1::LegCommand& command : *commands.mutable_commands()) {
    if (status.ok()) status = Obey(command);
  }
  if (!status.ok()) stream_->Close(status);
}

absl::Status RouterLegs::Obey(v1::LegCommand& command) {
  switch (command.command_case()) {
    case v1::LegCommand::kPrefill:
      return Begin(command.leg(), methods_->prefill,
                   std::move(*command.mutable_prefill()));
    case v1::LegCommand::kDecode:
      return Begin(command.leg(), methods_->decode,
                   std::move(*command.mutable_decode()));
    case v1::LegCommand::kCancel:
      Cancel(command.leg());
      return absl::OkStatus();
    case v1::LegCommand::COMMAND_NOT_SET:
      break;
  }
  return Refuse("command", "is missing or unknown");
}

absl::Status RouterLegs::Begin(uint64_t number, const StreamMethod& method,
                               std::string request) {
  if (number <= last_) {
    return Refuse("leg", absl::StrCat(number, " comes after ", last_));
  }
  last_ = number;
  handlers_[number] = nullptr;
  auto handler = method({}, std::move(request),
                        std::make_shared<Leg>(shared_from_this(), number));
  handlers_[number] = std::move(handler);
  return absl::OkStatus();
}

void RouterLegs::Cancel(uint64_t number) {
  auto node = handlers_.extract(number);
  if (node.empty() || node.mapped() == nullptr) return;
  node.mapped()->OnClosed(absl::CancelledError("the router gave up"));
}

void RouterLegs::CancelAll() {
  while (!handlers_.empty()) Cancel(handlers_.begin()->first);
}

void RouterLegs::Send(uint64_t number, std::string event) {
  std::lock_guard<std::mutex> lock(mutex_);
  v1::LegReport report;
  report.set_leg(number);
  const size_t bytes = event.size();
  report.set_event(std::move(event));
  AddLocked(std::move(report), bytes);
}

void RouterLegs::Close(uint64_t number, const absl::Status& status) {
  std::lock_guard<std::mutex> lock(mutex_);
  v1::LegReport report;
  report.set_leg(number);
  *report.mutable_end() = ToProto(status);
  over_.push_back(number);
  const size_t bytes = status.message().size();
  AddLocked(std::move(report), bytes);
}

void RouterLegs::AddLocked(v1::LegReport report, size_t bytes) {
  if (bytes_ + bytes > kBatchBytes) FlushLocked();
  *reports_.add_reports() = std::move(report);
  bytes_ += bytes;
  if (round_ends_) return;
  round_ends_ = loop_->Post([self = shared_from_this()] { self->EndRound(); });
}

void RouterLegs::FlushLocked() {
  if (reports_.reports_size() == 0) return;
  stream_->Send(reports_.SerializeAsString());
  reports_.Clear();
  bytes_ = 0;
}

void RouterLegs::EndRound() {
  std::vector<uint64_t> over;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    round_ends_ = false;
    FlushLocked();
    over.swap(over_);
  }
  for (const uint64_t number : over) {
    auto node = handlers_.extract(number);
    if (node.empty() || node.mapped() == nullptr) continue;
    node.mapped()->OnClosed(absl::OkStatus());
  }
}

class Handler : public StreamHandler {
 public:
  explicit Handler(std::shared_ptr<RouterLegs> router)
      : router_(std::move(router)) {}
  // A leg's handler holds its stream, which holds this.
  ~Handler() override { router_->Forget(); }
  void OnMessage(std::string message) override { router_->OnCommands(message); }
  void OnClosed(const absl::Status&) override { router_->CancelAll(); }

 private:
  const std::shared_ptr<RouterLegs> router_;
};

}  // namespace

StreamMethod ServeLegs(WorkerMethods methods, std::shared_ptr<Inbox> loop) {
  auto shared = std::make_shared<const WorkerMethods>(std::move(methods));
  return [shared, loop](const CallInfo&, std::string,
                        std::shared_ptr<Stream> stream) {
    return std::make_unique<Handler>(
        std::make_shared<RouterLegs>(std::move(stream), shared, loop));
  };
}

}  // namespace penstock
