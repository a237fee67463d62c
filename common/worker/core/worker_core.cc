#include "common/worker/core/worker_core.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/engine/resume.h"
#include "common/peer/error_reason.h"
#include "common/worker/core/loopback_peers.h"
#include "common/worker/core/pull_source.h"
#include "common/worker/core/pull_tier.h"
#include "decode_worker/core/decode_role.h"
#include "kvstore/core/borrowed_tier.h"
#include "kvstore/core/tier_stack.h"
#include "prefill_worker/core/prefill_role.h"

namespace penstock {

// Hands what the control plane brings to the role that it concerns. Both roles
// ignore what they do not know.
class WorkerCore::Dispatcher : public PeerListener {
 public:
  explicit Dispatcher(WorkerCore* core) : core_(*core) {}

  void OnPeerReady(const WorkerKey& peer) override {
    core_.prefill_->OnPeerReady(peer);
    if (core_.pull_ != nullptr) core_.pull_->OnPeerReady(peer);
  }
  void OnPeerMessage(const WorkerKey& peer, HandoffMessage message) override {
    if (IsPull(TransferOf(message))) {
      OnPullMessage(peer, std::move(message));
      return;
    }
    core_.prefill_->OnPeerMessage(peer, message);
    if (core_.decode_ != nullptr) {
      core_.decode_->OnPeerMessage(peer, std::move(message));
    }
  }
  void OnPeerLost(const WorkerKey& peer, const absl::Status& why) override {
    core_.prefill_->OnPeerLost(peer, why);
    if (core_.decode_ != nullptr) core_.decode_->OnPeerLost(peer, why);
    core_.source_->OnPeerLost(peer);
    if (core_.pull_ != nullptr) core_.pull_->OnPeerLost(peer);
  }
  void OnDialFailed(const PeerAddress& address,
                    const absl::Status& why) override {
    core_.prefill_->OnDialFailed(address, why);
    if (core_.pull_ != nullptr) core_.pull_->OnDialFailed(address);
  }

 private:
  void OnPullMessage(const WorkerKey& peer, HandoffMessage message) {
    if (auto* ask = std::get_if<PullAsk>(&message)) {
      core_.source_->OnAsk(peer, *ask);
    } else if (auto* abort = std::get_if<Abort>(&message)) {
      core_.source_->OnAbort(peer, abort->transfer);
    } else if (auto* done = std::get_if<PullDone>(&message);
               done != nullptr && core_.pull_ != nullptr) {
      core_.pull_->OnDone(peer, std::move(*done));
    }
  }

  WorkerCore& core_;
};

absl::StatusOr<std::unique_ptr<WorkerCore>> WorkerCore::Create(
    WorkerCoreOptions options, WorkerCorePorts ports) {
  if (!options.roles.prefill && !options.roles.decode) {
    return absl::InvalidArgumentError(
        "a worker needs a role: prefill, decode or both");
  }
  if (options.total_blocks < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("kv_memory holds no KV block; one takes ",
                     ports.backend->kv_layout().block_bytes(), " bytes"));
  }
  RETURN_IF_ERROR(CostModel::Create(options.engine.cost).status());
  return std::unique_ptr<WorkerCore>(
      new WorkerCore(std::move(options), std::move(ports)));
}

WorkerCore::WorkerCore(WorkerCoreOptions options, WorkerCorePorts ports)
    : options_(std::move(options)),
      ports_(std::move(ports)),
      pool_(options_.total_blocks),
      cache_log_(options_.cache_event_ring),
      cache_(&pool_, ports_.hasher, &cache_log_),
      kept_(options_.handoff.lease, ports_.clock, ports_.timers),
      policy_(MakeContinuousBatching()),
      engine_(options_.engine,
              {ports_.backend, &pool_, &cache_, policy_.get(), ports_.hasher,
               ports_.clock,
               ports_.engine_probe != nullptr ? ports_.engine_probe
                                              : &null_engine_probe_,
               &kept_, MakeTier(), ports_.timers, ports_.cores}),
      peers_(std::make_unique<LoopbackPeers>(options_.self, ports_.peers)) {
  context_.self = options_.self;
  context_.content = options_.content;
  context_.layout = ports_.backend->kv_layout();
  context_.numerics = ports_.backend->caps().numerics;
  context_.context_length = options_.context_length;
  context_.options = options_.handoff;
  context_.engine = &engine_;
  context_.pool = &pool_;
  context_.cache = &cache_;
  context_.kept = &kept_;
  context_.peers = peers_.get();
  const auto& allowed = options_.handoff.allowed_transports;
  std::copy_if(ports_.transports.begin(), ports_.transports.end(),
               std::back_inserter(context_.transports),
               [&](const KvTransport* transport) {
                 return allowed.empty() ||
                        std::find(allowed.begin(), allowed.end(),
                                  transport->caps().kind) != allowed.end();
               });
  std::stable_sort(context_.transports.begin(), context_.transports.end(),
                   [](const KvTransport* a, const KvTransport* b) {
                     return a->caps().preference > b->caps().preference;
                   });
  context_.hasher = ports_.hasher;
  context_.tokenizer = ports_.tokenizer;
  context_.clock = ports_.clock;
  context_.timers = ports_.timers;
  context_.probe = ports_.handoff_probe != nullptr ? ports_.handoff_probe
                                                   : &null_handoff_probe_;
  source_ = std::make_unique<PullSource>(&context_);
  prefill_ = std::make_unique<PrefillRole>(&context_);
  if (options_.roles.decode) {
    decode_ = std::make_unique<DecodeRole>(&context_);
  }
  dispatcher_ = std::make_unique<Dispatcher>(this);
}

// Fetches that end with the engine tell nobody.
WorkerCore::~WorkerCore() { context_.peers = nullptr; }

KvTier* WorkerCore::MakeTier() {
  if (ports_.peers == nullptr) return ports_.tier;
  std::vector<std::unique_ptr<KvTier>> tiers;
  if (ports_.tier != nullptr) {
    tiers.push_back(std::make_unique<BorrowedTier>(ports_.tier));
  }
  auto pull = std::make_unique<PullTier>(&context_);
  pull_ = pull.get();
  tiers.push_back(std::move(pull));
  below_ = std::make_unique<TierStack>(std::move(tiers));
  return below_.get();
}

void WorkerCore::TakeHint(const LegRequest& request) {
  if (pull_ == nullptr || request.source.worker.empty()) return;
  std::vector<TokenId> tokens = request.history();
  tokens.resize(std::min<size_t>(tokens.size(), request.source_tokens));
  const BlockHash root =
      ports_.hasher->Root({options_.content, "", request.request.tenant,
                           request.request.cache_salt});
  pull_->Hint(request.source, ports_.hasher->Chain(root, tokens));
}

void WorkerCore::StartLeg(LegKind kind, LegRequest request, LegSink* sink) {
  if (request.worker_incarnation != options_.self.incarnation) {
    sink->OnFinished(MakeError(
        ErrorReason::kWorkerLost,
        absl::StrCat(options_.self.name,
                     " was restarted; the leg names its earlier life")));
    return;
  }
  const bool kept = Keeps(request.request.id);
  if (draining_ && !kept) {
    sink->OnFinished(MakeError(ErrorReason::kDraining,
                               absl::StrCat(options_.self.name, " drains"), "",
                               absl::Seconds(1)));
    return;
  }
  RequestLimits limits;
  limits.context_length = options_.context_length;
  limits.max_prompt_tokens = options_.context_length - 1;
  limits.vocab_size = options_.vocab_size;
  absl::Status valid = Validate(request.request, limits);
  if (valid.ok()) valid = CheckDelivered(request, limits);
  if (!valid.ok()) {
    sink->OnFinished(valid);
    return;
  }
  // Whatever its role, a worker can hand on what it keeps.
  if (kind == LegKind::kPrefill && !options_.roles.prefill && !kept) {
    sink->OnFinished(MakeError(
        ErrorReason::kTransferFailed,
        absl::StrCat(options_.self.name,
                     " does not prefill, and keeps nothing of the request")));
    return;
  }
  if (kind == LegKind::kDecode && !options_.roles.decode) {
    sink->OnFinished(MakeError(
        ErrorReason::kIncompatibleWorker,
        absl::StrCat(options_.self.name, " does not serve this role")));
    return;
  }
  TakeHint(request);
  if (kind == LegKind::kPrefill) {
    prefill_->StartLeg(std::move(request), sink);
  } else {
    decode_->StartLeg(std::move(request), sink);
  }
}

bool WorkerCore::Keeps(RequestId request) const {
  return kept_.Has(request) || prefill_->keeps(request) ||
         (decode_ != nullptr && decode_->keeps(request));
}

void WorkerCore::CancelLeg(LegKind kind, TransferId transfer) {
  if (kind == LegKind::kPrefill) {
    prefill_->CancelLeg(transfer);
  } else if (kind == LegKind::kDecode && decode_ != nullptr) {
    decode_->CancelLeg(transfer);
  }
}

PeerListener* WorkerCore::peer_listener() { return dispatcher_.get(); }

bool WorkerCore::Tick() {
  bool progress = peers_->Deliver(*dispatcher_);
  progress |= PumpTransports();
  progress |= prefill_->Poll();
  if (decode_ != nullptr) progress |= decode_->Poll();
  progress |= engine_.Tick();
  return progress;
}

bool WorkerCore::PumpTransports() {
  bool progress = false;
  for (KvTransport* transport : context_.transports) {
    const TransportKind kind = transport->caps().kind;
    while (const auto arrival = transport->PollArrival()) {
      progress = true;
      if (IsPull(arrival->transfer)) {
        if (pull_ != nullptr) pull_->OnArrival(*arrival);
      } else if (decode_ != nullptr) {
        decode_->OnArrival(kind, *arrival);
      }
    }
    while (const auto completion = transport->PollCompletion()) {
      progress = true;
      if (IsPull(completion->transfer)) {
        source_->OnCompletion(transport, *completion);
      } else {
        prefill_->OnCompletion(kind, *completion);
      }
    }
  }
  return progress;
}

bool WorkerCore::idle() const {
  return !engine_.busy() && peers_->empty() && source_->idle() &&
         (pull_ == nullptr || pull_->idle()) && prefill_->idle() &&
         (decode_ == nullptr || decode_->idle());
}

void WorkerCore::BeginDrain() {
  draining_ = true;
  if (decode_ != nullptr) decode_->BeginDrain();
}

WorkerInfo WorkerCore::Info() const {
  WorkerInfo info;
  info.key = options_.self;
  info.roles = options_.roles;
  info.model = options_.model;
  info.content = options_.content;
  info.layout = context_.layout.id();
  info.numerics = context_.numerics;
  info.context_length = options_.context_length;
  info.total_blocks = pool_.total();
  info.max_sequences = options_.engine.max_sequences;
  for (const KvTransport* transport : context_.transports) {
    info.transports.push_back(transport->caps().kind);
  }
  return info;
}

WorkerLoad WorkerCore::Load() const {
  EngineLoad engine = engine_.load();
  BlockCounts counts = pool_.counts();
  WorkerLoad load;
  load.health = draining_ ? WorkerHealth::kDraining : WorkerHealth::kReady;
  load.queued_requests = engine.waiting + prefill_->waiting() +
                         (decode_ != nullptr ? decode_->waiting() : 0);
  load.active_requests = engine.running;
  load.queued_tokens = engine.queued_tokens;
  load.free_blocks = counts.free + counts.cached + pool_.kept();
  load.total_blocks = pool_.total();
  load.step_time = engine.step_time;
  load.costs = engine.costs;
  return load;
}

void WorkerCore::CountBlocks(BlockCensus& census) const {
  engine_.CountBlocks(census);
  cache_.CountBlocks(census);
  kept_.CountBlocks(census);
  source_->CountBlocks(census);
  prefill_->CountBlocks(census);
  if (decode_ != nullptr) decode_->CountBlocks(census);
}

absl::Status WorkerCore::CheckBounds() const {
  auto within = [](absl::string_view what, size_t has, size_t most) {
    if (has <= most) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat(what, ": ", has, ", at most ", most));
  };
  RETURN_IF_ERROR(within("cache events", cache_log_.kept(), cache_log_.ring()));
  if (cache_log_.cached() != static_cast<size_t>(cache_.size())) {
    return absl::InternalError(
        absl::StrCat("routers hear of ", cache_log_.cached(),
                     " cached blocks, the cache has ", cache_.size()));
  }
  RETURN_IF_ERROR(within("requests kept", kept_.size(), KeptKv::kMostRequests));
  if (decode_ == nullptr) return absl::OkStatus();
  // One more than the limit may be there: a leg without its offer.
  RETURN_IF_ERROR(within("transfers that wait for credit",
                         static_cast<size_t>(decode_->waiting()),
                         decode_->transfers()));
  return absl::OkStatus();
}

std::vector<TransferId> WorkerCore::Generating() const {
  if (decode_ == nullptr) return {};
  return decode_->Generating();
}

CacheEventLog& WorkerCore::cache_events() { return cache_log_; }

const BlockPool& WorkerCore::pool() const { return pool_; }

}  // namespace penstock
