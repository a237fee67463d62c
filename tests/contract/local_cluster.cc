#include "tests/contract/local_cluster.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "common/base/check.h"
#include "common/env/real/entropy.h"
#include "common/transfer/inproc/inproc_transport.h"
#include "common/transfer/shm/shm_transport.h"
#include "common/transfer/tcp/tcp_transport.h"

namespace penstock {

// Rung by backends and transports from their threads.
struct LocalCluster::Doorbell {
  void Ring() {
    std::lock_guard<std::mutex> lock(mutex);
    rung = true;
    changed.notify_one();
  }
  void WaitUntil(Instant now, Instant deadline) {
    std::unique_lock<std::mutex> lock(mutex);
    auto limit = std::chrono::nanoseconds(
        std::min<int64_t>((deadline.nanos() - now.nanos()), 1'000'000'000));
    changed.wait_for(lock, limit, [this] { return rung; });
    rung = false;
  }
  std::mutex mutex;
  std::condition_variable changed;
  bool rung = false;  // guarded by mutex
};

class LocalCluster::Peers : public PeerNetwork {
 public:
  Peers(LocalCluster* cluster, WorkerKey self)
      : cluster_(cluster), self_(std::move(self)) {}

  void Send(const WorkerKey& peer, HandoffMessage message) override {
    if (auto* commit = std::get_if<Commit>(&message)) {
      cluster_->state_bytes_ += commit->manifest.state.size();
    }
    cluster_->mail_.push_back(
        [cluster = cluster_, from = self_, peer, message = std::move(message)] {
          for (auto& host : cluster->hosts_) {
            if (host->key == peer) {
              host->core->peer_listener()->OnPeerMessage(from, message);
            }
          }
        });
  }

  void Dial(const PeerAddress& address) override {
    cluster_->mail_.push_back([cluster = cluster_, self = self_, address] {
      Host* dialling = nullptr;
      const Host* dialled = nullptr;
      for (auto& host : cluster->hosts_) {
        if (host->key == self) dialling = host.get();
        if (host->key.name == address.worker) dialled = host.get();
      }
      CHECK(dialling != nullptr && dialled != nullptr);
      dialling->core->peer_listener()->OnPeerReady(dialled->key);
    });
  }

 private:
  LocalCluster* cluster_;
  WorkerKey self_;
};

// Collects one leg.
class LocalCluster::Sink : public LegSink {
 public:
  explicit Sink(LocalResult* result) : result_(result) {}
  void OnAccepted() override {}
  void OnFrame(TokenFrame frame) override {
    for (TokenLogprobs& token : frame.prompt.tokens) {
      CHECK(frame.prompt.first_index++ ==
            static_cast<int>(result_->prompt.size()) + 1)
          << "a prompt token is missing or doubled";
      result_->prompt.push_back(std::move(token));
    }
    LocalResult::Answer& answer = result_->answers.at(frame.sample);
    CHECK(frame.tokens.empty() ||
          frame.first_index == static_cast<int>(answer.tokens.size()))
        << "a token is missing or doubled";
    for (FrameToken& token : frame.tokens) {
      answer.tokens.push_back(token.id);
      answer.logprobs.push_back(std::move(token.logprobs));
    }
    answer.finish = frame.finish;
    if (frame.usage.prompt_tokens > 0) {
      result_->usage = frame.usage;
      result_->transfer = frame.transfer;
    }
  }
  void OnFinished(const absl::Status& status) override {
    if (!status.ok()) result_->status = status;
    result_->tokens = result_->answers[0].tokens;
    result_->logprobs = result_->answers[0].logprobs;
    finished_ = true;
  }
  bool finished() const { return finished_; }

 private:
  LocalResult* result_;
  bool finished_ = false;
};

LocalCluster::LocalCluster(LocalClusterOptions options)
    : options_(std::move(options)), doorbell_(std::make_unique<Doorbell>()) {
  auto tokenizer = CreateTokenizer(options_.model->vocabulary());
  CHECK(tokenizer.ok()) << tokenizer.status().ToString();
  tokenizer_ = *std::move(tokenizer);
  switch (options_.handoff) {
    case Handoff::kNone:
      hosts_.push_back(MakeHost("decode", {false, true}));
      break;
    case Handoff::kShared:
      hosts_.push_back(MakeHost("both", {true, true}));
      break;
    default:
      hosts_.push_back(MakeHost("prefill", {true, false}));
      hosts_.push_back(MakeHost("decode", {false, true}));
  }
}

LocalCluster::~LocalCluster() = default;

std::vector<std::unique_ptr<KvTransport>> LocalCluster::MakeTransports(
    const Host& host) {
  TransportOptions worker;
  worker.self = host.key;
  worker.arena = host.memory->arena();
  worker.layout = host.backend->kv_layout();
  worker.hasher = hasher_;
  worker.wake = [this] { doorbell_->Ring(); };
  worker.clock = &clock_;
  worker.entropy = DrawEntropy;
  worker.faults = options_.faults;
  std::vector<std::unique_ptr<KvTransport>> transports;
  auto add = [&](auto made) {
    CHECK(made.ok()) << made.status().ToString();
    transports.push_back(*std::move(made));
    worker.faults = nullptr;
  };
  const Handoff how = options_.handoff;
  if (how == Handoff::kInproc) add(InprocTransport::Create({worker, nullptr}));
  if (how == Handoff::kShm || how == Handoff::kShmOrTcp) {
    ShmTransport::Options shm;
    shm.worker = worker;
    add(ShmTransport::Create(shm));
  }
  if (how == Handoff::kTcp || how == Handoff::kShmOrTcp) {
    TcpTransport::Options tcp;
    tcp.worker = worker;
    add(TcpTransport::Create(tcp));
  }
  return transports;
}

std::unique_ptr<LocalCluster::Host> LocalCluster::MakeHost(
    const std::string& name, WorkerRoles roles) {
  auto host = std::make_unique<Host>();
  host->key = {name, DrawIncarnation()};
  KvLayout layout = KvLayout::For(options_.model->spec(), options_.kv_type);
  auto memory = ArenaMemory::Create(layout.block_bytes() * options_.blocks);
  CHECK(memory.ok()) << memory.status().ToString();
  host->memory = *std::move(memory);
  auto backend =
      options_.backend(host->memory->arena(), [this] { doorbell_->Ring(); });
  CHECK(backend.ok()) << backend.status().ToString();
  host->backend = *std::move(backend);
  if (options_.tier) {
    host->tier = options_.tier(
        host->key,
        TierWorker{
            {host->backend->kv_layout().id(), options_.model->spec().content,
             host->backend->caps().numerics},
            ArenaPages(host->memory->arena(), host->backend->kv_layout()),
            hasher_,
            [this] { doorbell_->Ring(); }},
        &clock_);
  }
  host->transports = MakeTransports(*host);
  host->peers = std::make_unique<Peers>(this, host->key);
  WorkerCoreOptions core;
  core.self = host->key;
  core.roles = roles;
  core.content = options_.model->spec().content;
  core.total_blocks = options_.blocks;
  core.context_length = options_.model->spec().context_length;
  core.vocab_size = options_.model->spec().vocab_size;
  core.engine = options_.engine;
  // Nobody tries again here what a busy machine makes late.
  core.handoff.starvation_timeout = absl::Minutes(1);
  if (options_.faults == nullptr) {
    core.handoff.lease = core.handoff.meet_timeout = absl::Minutes(1);
    core.handoff.post_timeout = core.handoff.arrival_timeout = absl::Minutes(1);
  }
  WorkerCorePorts ports;
  ports.backend = host->backend.get();
  ports.peers = host->peers.get();
  for (const auto& transport : host->transports) {
    ports.transports.push_back(transport.get());
  }
  ports.tier = host->tier.get();
  ports.hasher = &hasher_;
  ports.tokenizer = tokenizer_.get();
  ports.clock = &clock_;
  ports.timers = &timers_;
  if (roles.decode) {
    ports.engine_probe = options_.engine_probe;
    ports.handoff_probe = options_.handoff_probe;
  }
  auto created = WorkerCore::Create(core, ports);
  CHECK(created.ok()) << created.status().ToString();
  host->core = *std::move(created);
  return host;
}

bool LocalCluster::DeliverMail() {
  std::deque<std::function<void()>> mail = std::exchange(mail_, {});
  for (auto& deliver : mail) deliver();
  return !mail.empty();
}

void LocalCluster::Pump(const std::function<bool()>& done) {
  Instant deadline = clock_.Now() + absl::Minutes(2);
  while (!done()) {
    CHECK(clock_.Now() < deadline) << "the cluster made no progress";
    bool progress = DeliverMail();
    progress |= timers_.RunDue(clock_.Now()) > 0;
    for (auto& host : hosts_) progress |= host->core->Tick();
    const BlockCounts counts = decode().pool().counts();
    peak_blocks_ = std::max(peak_blocks_, counts.active + counts.in_transfer);
    if (!progress) {
      doorbell_->WaitUntil(clock_.Now(),
                           std::min(timers_.NextDeadline(), deadline));
    }
  }
}

std::vector<LocalResult> LocalCluster::Serve(
    const std::vector<GenerateRequest>& requests) {
  std::vector<LocalResult> results(requests.size());
  std::vector<std::unique_ptr<Sink>> sinks;
  peak_blocks_ = 0;
  state_bytes_ = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    results[i].answers.resize(requests[i].n);
    LegRequest leg;
    leg.request = requests[i];
    leg.request.id = RequestId(next_request_++);
    leg.attempt = AttemptId(1);
    Host& decode = *hosts_.back();
    if (options_.handoff != Handoff::kNone) {
      Host& prefill = *hosts_.front();
      leg.partner = {decode.key.name, decode.key.name};
      leg.worker_incarnation = prefill.key.incarnation;
      sinks.push_back(std::make_unique<Sink>(&results[i]));
      prefill.core->StartLeg(LegKind::kPrefill, leg, sinks.back().get());
      leg.partner = {prefill.key.name, prefill.key.name};
    }
    leg.worker_incarnation = decode.key.incarnation;
    sinks.push_back(std::make_unique<Sink>(&results[i]));
    decode.core->StartLeg(LegKind::kDecode, leg, sinks.back().get());
  }
  Pump([&] {
    for (auto& sink : sinks) {
      if (!sink->finished()) return false;
    }
    for (auto& host : hosts_) {
      // What a leg that failed left is kept for a while.
      if (!host->core->idle() || host->core->keeps()) return false;
    }
    return true;
  });
  for (auto& host : hosts_) {
    BlockCounts counts = host->core->pool().counts();
    CHECK(counts.active + counts.in_transfer + counts.quarantined == 0);
    host->core->pool().CheckConservation();
  }
  return results;
}

}  // namespace penstock
