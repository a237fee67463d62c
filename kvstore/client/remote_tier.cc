#include "kvstore/client/remote_tier.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/env/real/entropy.h"
#include "common/rpc/store_wire.h"
#include "common/transfer/set/transport_set.h"
#include "kvstore/core/page_label.h"

namespace penstock {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(2);
constexpr absl::Duration kDeadlinesEvery = absl::Milliseconds(250);
constexpr size_t kMostPuts = 32;
// Of a fetch, until some were measured.
constexpr double kAssumedBytesASecond = 1e9;

}  // namespace

class RemoteTier::Handler : public StreamHandler {
 public:
  explicit Handler(RemoteTier* tier) : tier_(tier) {}
  void Orphan() { tier_ = nullptr; }

  void OnMessage(std::string bytes) override {
    if (tier_ == nullptr) return;
    auto reply = DecodeStoreReply(bytes);
    if (!reply.ok()) {
      tier_->stream_->Close(reply.status());
      return;
    }
    tier_->OnReply(*std::move(reply));
  }
  void OnClosed(const absl::Status& status) override {
    if (tier_ != nullptr) tier_->OnClosed(status);
  }

 private:
  RemoteTier* tier_;
};

absl::StatusOr<std::unique_ptr<RemoteTier>> RemoteTier::Create(Options options,
                                                               Ports ports) {
  CHECK(ports.clock != nullptr && ports.timers != nullptr &&
        !options.transports.empty());
  TransportOptions worker;
  worker.self = options.self;
  worker.arena = options.worker.pages.arena();
  worker.layout = options.worker.pages.layout();
  worker.hasher = options.worker.hasher;
  worker.wake = options.worker.wake;
  worker.clock = ports.clock;
  worker.entropy = DrawEntropy;
  ASSIGN_OR_RETURN(
      auto transports,
      MakeTransports({std::move(worker), options.transports,
                      options.data_listen, options.data_advertised_host}));
  return std::unique_ptr<RemoteTier>(new RemoteTier(
      std::move(options), std::move(ports), std::move(transports)));
}

RemoteTier::RemoteTier(Options options, Ports ports,
                       std::vector<std::unique_ptr<KvTransport>> transports)
    : options_(std::move(options)),
      ports_(std::move(ports)),
      transports_(std::move(transports)),
      answers_(options_.freshness),
      pause_(kFirstPause),
      each_(absl::Seconds(
          static_cast<double>(options_.worker.pages.layout().block_bytes()) /
          kAssumedBytesASecond)) {}

RemoteTier::~RemoteTier() {
  if (!dialled_) return;
  ports_.timers->Cancel(dial_timer_);
  ports_.timers->Cancel(deadline_timer_);
  if (handler_ != nullptr) handler_->Orphan();
  if (stream_ != nullptr) {
    stream_->Close(absl::CancelledError("the worker stops"));
  }
}

void RemoteTier::Connect() {
  dial_timer_ = 0;
  dialled_ = true;
  auto handler = std::make_unique<Handler>(this);
  handler_ = handler.get();
  // Anew, so that our pauses count and not the connection's own.
  channel_ = RpcChannel::Open(options_.store);
  stream_ = channel_->Start(
      kAttachMethod, std::move(handler), ports_.inbox,
      {.max_queued_messages = 1 << 16, .max_queued_bytes = 64 << 20});
  StoreHello hello{options_.self,
                   options_.worker.pages.layout(),
                   options_.worker.identity.content,
                   options_.worker.identity.numerics,
                   {}};
  for (const auto& transport : transports_) {
    hello.addresses.push_back(transport->Describe());
  }
  Send(std::move(hello));
}

void RemoteTier::Send(const StoreRequest& request) {
  if (stream_ != nullptr) stream_->Send(EncodeStoreRequest(request));
}

void RemoteTier::Wake() {
  if (options_.worker.wake) options_.worker.wake();
}

void RemoteTier::OnClosed(const absl::Status& status) {
  stream_ = nullptr;
  handler_ = nullptr;
  if (store_.has_value() || pause_ == kFirstPause) {
    Log(LogLevel::kWarning, "the KV store is away",
        {{"store", options_.store}, {"why", std::string(status.message())}});
  }
  store_.reset();
  answers_.Clear();
  const absl::Status away = absl::UnavailableError("the KV store is away");
  for (auto& [id, get] : gets_) EndGet(get, away);
  for (auto it = puts_.begin(); it != puts_.end();) {
    const auto [id, put] = *it++;
    // One that is being read ends with its post.
    if (!put.posted) EndPut(id, away);
  }
  dial_timer_ = ports_.timers->Schedule(ports_.clock->Now() + pause_,
                                        [this] { Connect(); });
  pause_ = std::min(pause_ * 2, kLongestPause);
  Wake();
}

void RemoteTier::OnReply(StoreReply reply) {
  std::visit([this](const auto& each) { On(each); }, reply);
}

void RemoteTier::On(const StoreWelcome& welcome) {
  pause_ = kFirstPause;
  // What an earlier life of it sends is not to be taken for the new one's.
  if (last_store_.incarnation && last_store_ != welcome.store) {
    for (const auto& transport : transports_) transport->DropPeer(last_store_);
  }
  last_store_ = welcome.store;
  store_ = welcome;
  Log(LogLevel::kInfo, "attached to the KV store", {{"store", options_.store}});
  Wake();
}

TierLookup RemoteTier::Lookup(absl::Span<const BlockHash> chain) {
  TierLookup found;
  found.each = each_;
  found.wait = each_ * static_cast<double>(gets_.size());
  if (!store_.has_value()) return found;
  const uint64_t id = ++last_id_;
  const StoreAnswers::Belief belief =
      answers_.Look(id, chain, ports_.clock->Now());
  if (belief.ask) Send(StoreLookup{id, {chain.begin(), chain.end()}});
  found.blocks = belief.blocks;
  found.asking = belief.asking;
  return found;
}

void RemoteTier::On(const StoreFound& found) {
  answers_.Found(found.id, found.blocks, ports_.clock->Now());
  Wake();
}

TierTicket RemoteTier::Fetch(std::vector<TierRead> reads) {
  CHECK(!reads.empty());
  const TierTicket ticket = ++last_ticket_;
  const Instant now = ports_.clock->Now();
  for (size_t i = 0; i < reads.size(); ++i) {
    const int page = static_cast<int>(i);
    if (!store_.has_value()) {
      ++stats_.failures;
      completions_.push_back(
          {ticket, page, absl::UnavailableError("the KV store is away")});
      continue;
    }
    const uint64_t id = ++last_id_;
    for (const auto& transport : transports_) {
      transport->PrepareReceive(GetTransfer(id), {reads[i].into});
    }
    Get& get = gets_[id];
    get.ticket = ticket;
    get.page = page;
    get.what = reads[i];
    get.began = now;
    get.deadline = now + options_.limit;
    Send(StoreGet{id, reads[i].key, reads[i].into});
  }
  ArmDeadlines();
  if (!completions_.empty()) Wake();
  return ticket;
}

void RemoteTier::On(const StoreGot& got) {
  auto it = gets_.find(got.id);
  if (it == gets_.end()) return;
  Get& get = it->second;
  if (get.end.has_value()) return;
  const BlockHash hash = get.what.key.hash;
  if (got.code != absl::StatusCode::kOk) {
    if (got.code == absl::StatusCode::kDataLoss) ++stats_.bad_pages;
    answers_.Doubt(hash);
    EndGet(get, absl::Status(got.code, "from the KV store"));
    Wake();
    return;
  }
  // The store heard that it landed after it had.
  for (const auto& transport : transports_) {
    while (auto arrival = transport->PollArrival()) OnArrival(*arrival);
  }
  const uint64_t bytes = options_.worker.pages.layout().block_bytes();
  absl::Status verdict = CheckLabel(
      {options_.worker.identity, got.key, bytes, got.checksum},
      options_.worker.identity, get.what.key, bytes, options_.worker.hasher);
  if (verdict.ok() && get.landed != got.checksum) {
    verdict = absl::DataLossError("what landed is not what the store holds");
  }
  if (verdict.ok()) {
    ++stats_.fetched;
    const double under_way = static_cast<double>(gets_.size());
    each_ += ((ports_.clock->Now() - get.began) / under_way - each_) / 8;
  } else {
    ++stats_.bad_pages;
    answers_.Doubt(hash);
  }
  EndGet(get, std::move(verdict));
  Wake();
}

void RemoteTier::OnArrival(const PageArrival& arrival) {
  auto it = gets_.find(arrival.transfer.request.value());
  if (it == gets_.end() ||
      arrival.transfer != GetTransfer(arrival.transfer.request.value())) {
    return;
  }
  // A page that was refused may have spoilt the one before it.
  it->second.landed =
      arrival.status.ok() &&
              arrival.layers ==
                  LayerRange{0, options_.worker.pages.layout().layers}
          ? std::optional<uint64_t>(arrival.checksum)
          : std::nullopt;
}

void RemoteTier::EndGet(Get& get, absl::Status status) {
  if (get.end.has_value()) return;
  if (absl::IsUnavailable(status)) ++stats_.failures;
  get.end = std::move(status);
}

void RemoteTier::FenceGets(Instant now) {
  for (auto it = gets_.begin(); it != gets_.end();) {
    auto& [id, get] = *it;
    if (get.deadline <= now) {
      EndGet(get, absl::UnavailableError("the KV store was too slow"));
    }
    if (get.end.has_value()) {
      while (get.fenced < transports_.size() &&
             transports_[get.fenced]->Revoke(GetTransfer(id))) {
        ++get.fenced;
      }
    }
    if (get.fenced < transports_.size()) {
      ++it;
      continue;
    }
    completions_.push_back({get.ticket, get.page, *std::move(get.end)});
    it = gets_.erase(it);
  }
}

void RemoteTier::Cancel(TierTicket fetch) {
  for (auto& [id, get] : gets_) {
    if (get.ticket == fetch) {
      EndGet(get, absl::CancelledError("the fetch was cancelled"));
    }
  }
  Wake();
}

TierStored RemoteTier::Store(const TierKey& key, BlockRef from,
                             absl::Duration recompute) {
  if (!store_.has_value() || recompute <= each_) {
    return {TierStoreVerdict::kNotWorthIt};
  }
  const Instant now = ports_.clock->Now();
  if (answers_.Holds(key.hash, now)) return {TierStoreVerdict::kHeld};
  if (puts_.size() >= kMostPuts) return {TierStoreVerdict::kBusy};
  const uint64_t id = ++last_id_;
  Put& put = puts_[id];
  put.ticket = ++last_ticket_;
  put.key = key;
  put.from = from;
  put.deadline = now + options_.limit;
  Send(StorePut{id, key, recompute});
  ArmDeadlines();
  return {TierStoreVerdict::kTaken, put.ticket};
}

void RemoteTier::On(const StoreGranted& granted) {
  auto it = puts_.find(granted.id);
  if (it == puts_.end()) {
    if (granted.verdict == TierStoreVerdict::kTaken) {
      Send(StoreGiveUp{granted.id});
    }
    return;
  }
  Put& put = it->second;
  switch (granted.verdict) {
    case TierStoreVerdict::kTaken:
      put.transfer = granted.transfer;
      put.into = granted.block;
      Post(granted.id, put);
      break;
    case TierStoreVerdict::kHeld:
      EndPut(granted.id, absl::OkStatus());
      break;
    case TierStoreVerdict::kNotWorthIt:
      EndPut(granted.id, absl::AbortedError("the KV store did not want it"));
      break;
    case TierStoreVerdict::kBusy:
      EndPut(granted.id, absl::ResourceExhaustedError("the KV store is busy"));
      break;
  }
  Wake();
}

void RemoteTier::Post(uint64_t id, Put& put) {
  const int layers = options_.worker.pages.layout().layers;
  while (store_.has_value() && put.tries < transports_.size()) {
    KvTransport& transport = *transports_[transport_];
    for (const TransportAddress& address : store_->addresses) {
      if (address.kind != transport.caps().kind ||
          !transport.Connect(store_->store, address).ok()) {
        continue;
      }
      const PostId post = transport.Post(
          store_->store, put.transfer,
          {{put.from.index, put.into, {0, layers}}}, put.deadline);
      put.posted = true;
      posts_[{transport_, post}] = id;
      return;
    }
    ++put.tries;
    transport_ = (transport_ + 1) % transports_.size();
  }
  Send(StoreGiveUp{id});
  EndPut(id, absl::UnavailableError("no way to the KV store"));
}

void RemoteTier::OnPosted(size_t transport, const PostCompletion& completion) {
  auto it = posts_.find({transport, completion.post});
  if (it == posts_.end()) return;
  const uint64_t id = it->second;
  posts_.erase(it);
  Put& put = puts_.at(id);
  put.posted = false;
  if (completion.status.ok()) {
    EndPut(id, absl::OkStatus());
    return;
  }
  // The way is closed: perhaps another is not.
  if (absl::IsUnavailable(completion.status)) {
    ++put.tries;
    transport_ = (transport + 1) % transports_.size();
    Post(id, put);
    return;
  }
  Send(StoreGiveUp{id});
  EndPut(id, completion.status);
}

void RemoteTier::EndPut(uint64_t id, const absl::Status& status) {
  auto it = puts_.find(id);
  if (status.ok()) {
    ++stats_.stored;
    answers_.SetHeld(it->second.key.hash, ports_.clock->Now());
  } else if (absl::IsUnavailable(status)) {
    ++stats_.failures;
  }
  completions_.push_back({it->second.ticket, 0, status});
  puts_.erase(it);
}

void RemoteTier::EndLate(Instant now) {
  FenceGets(now);
  for (auto it = puts_.begin(); it != puts_.end();) {
    const auto [id, put] = *it++;
    // A post has a deadline of its own, and only its end frees the block.
    if (put.posted || now < put.deadline) continue;
    Send(StoreGiveUp{id});
    EndPut(id, absl::UnavailableError("the KV store was too slow"));
  }
}

void RemoteTier::ArmDeadlines() {
  if (deadline_timer_ != 0 || (gets_.empty() && puts_.empty())) return;
  deadline_timer_ =
      ports_.timers->Schedule(ports_.clock->Now() + kDeadlinesEvery, [this] {
        deadline_timer_ = 0;
        Wake();
        ArmDeadlines();
      });
}

std::optional<TierCompletion> RemoteTier::Poll() {
  if (!dialled_) Connect();
  for (size_t i = 0; i < transports_.size(); ++i) {
    while (auto arrival = transports_[i]->PollArrival()) OnArrival(*arrival);
    while (auto posted = transports_[i]->PollCompletion()) OnPosted(i, *posted);
  }
  EndLate(ports_.clock->Now());
  if (completions_.empty()) return std::nullopt;
  TierCompletion completion = std::move(completions_.front());
  completions_.pop_front();
  return completion;
}

RemoteTier::Stats RemoteTier::stats() const {
  Stats stats = stats_;
  stats.attached = store_.has_value();
  return stats;
}

}  // namespace penstock
