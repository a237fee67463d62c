#include "tools/penstock/load_generator.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace penstock {
namespace {

using SteadyClock = std::chrono::steady_clock;

double MillisecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - start)
      .count();
}

}  // namespace

// One request in flight. Owns itself: gRPC calls OnDone last, on one of its
// threads.
class LoadGenerator::Call
    : public grpc::ClientReadReactor<v1::GenerateResponse> {
 public:
  Call(LoadGenerator& generator, size_t index, const PlannedRequest& planned,
       double due_ms, SteadyClock::time_point start)
      : generator_(generator), index_(index), start_(start) {
    record_.due_ms = due_ms;
    record_.prompt_tokens = static_cast<int>(planned.prompt.size());
    request_.mutable_ids()->mutable_ids()->Add(planned.prompt.begin(),
                                               planned.prompt.end());
    request_.mutable_sampling()->set_temperature(0);
    request_.mutable_stop()->set_max_tokens(planned.output_tokens);
    request_.mutable_stop()->set_ignore_eos(true);
    context_.set_deadline(
        std::chrono::system_clock::now() +
        absl::ToChronoMilliseconds(generator.options_.timeout));
  }

  void Start() {
    generator_.client_.stub().async()->Generate(&context_, &request_, this);
    StartRead(&response_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (const int tokens = response_.frame().tokens_size(); tokens > 0) {
      record_.frame_ms.push_back(MillisecondsSince(start_));
      record_.frame_tokens.push_back(tokens);
    }
    if (response_.frame().has_usage()) {
      record_.cached_tokens =
          static_cast<int>(response_.frame().usage().cached_tokens());
    }
    StartRead(&response_);
  }

  void OnDone(const grpc::Status& status) override {
    record_.end_ms = MillisecondsSince(start_);
    generator_.OnEnd(index_, std::move(record_), status);
    delete this;
  }

 private:
  LoadGenerator& generator_;
  const size_t index_;
  const SteadyClock::time_point start_;
  grpc::ClientContext context_;
  v1::GenerateRequest request_;
  v1::GenerateResponse response_;
  RequestRecord record_;
};

LoadGenerator::Result LoadGenerator::Run(
    const std::vector<PlannedRequest>& plan) {
  result_ = {};
  result_.records.resize(plan.size());
  const SteadyClock::time_point start = SteadyClock::now();
  std::unique_lock<std::mutex> lock(mutex_);
  for (size_t i = 0; i < plan.size(); ++i) {
    const auto due =
        start + std::chrono::duration_cast<SteadyClock::duration>(
                    std::chrono::duration<double, std::milli>(plan[i].due_ms));
    // Nothing notifies the first of these: it is a wait for a time.
    ended_.wait_until(lock, due, [&] { return SteadyClock::now() >= due; });
    double due_ms = plan[i].due_ms;
    if (options_.concurrency > 0 && running_ >= options_.concurrency) {
      ended_.wait(lock, [this] { return running_ < options_.concurrency; });
      // In a closed loop a request is due when there is room for it; one that
      // had a time of its own keeps it.
      if (due_ms == 0) due_ms = MillisecondsSince(start);
    }
    ++running_;
    lock.unlock();
    (new Call(*this, i, plan[i], due_ms, start))->Start();
    lock.lock();
  }
  ended_.wait(lock, [this] { return running_ == 0; });
  for (const RequestRecord& record : result_.records) {
    result_.elapsed_ms = std::max(result_.elapsed_ms, record.end_ms);
  }
  return std::move(result_);
}

void LoadGenerator::OnEnd(size_t index, RequestRecord record,
                          const grpc::Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!status.ok()) {
    record.failed = true;
    if (result_.first_error.empty()) {
      result_.first_error = std::string(DescribeFailure(status).message());
    }
  }
  result_.records[index] = std::move(record);
  --running_;
  // Under the lock: the generator may be gone as soon as it is released.
  ended_.notify_all();
}

}  // namespace penstock
