#include "router/core/testing/feed_exercise.h"

#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace penstock {
namespace {

constexpr int kWorkers = 6;
constexpr int kSettleEvery = 300;

WorkerRegistry::Options RegistryOptions() {
  WorkerRegistry::Options options;
  options.content = ContentId(1);
  return options;
}

}  // namespace

FeedExercise::FeedExercise(uint64_t seed)
    : random_(seed),
      forest_(random_, 40, 8, 60),
      registry_(RegistryOptions(), clock_, timers_,
                [](const WorkerKey&, const absl::Status&) {}),
      workers_(kWorkers) {
  for (int i = 0; i < kWorkers; ++i) {
    workers_[i].Start(absl::StrCat("w", i));
    Register(workers_[i].key());
  }
  Register(hostile_);
}

std::vector<std::string> FeedExercise::Outcomes() {
  return {"stored",          "removed",
          "cleared",         "never sent",
          "sent twice",      "arrived",
          "replayed",        "too old to be replayed",
          "asked for all",   "restarted",
          "connected again", "forgotten",
          "hostile events",  "hostile snapshot",
          "settled"};
}

void FeedExercise::Register(const WorkerKey& key) {
  WorkerInfo info;
  info.key = key;
  info.roles.decode = true;
  info.control_address = "localhost:1";
  info.content = ContentId(1);
  info.total_blocks = 5000;
  info.transports = {TransportKind::kTcp};
  const absl::Status status = registry_.Register(info);
  CHECK(status.ok()) << status;
}

std::string FeedExercise::Next() {
  if (++steps_ % kSettleEvery == 0) return Settle();
  FeedWorker& worker = workers_[random_.Below(workers_.size())];
  const uint64_t choice = random_.Below(100);
  if (choice < 45) return ChangeCache(worker);
  if (choice < 48) {
    worker.Repeat(random_);
    return "sent twice";
  }
  if (choice < 51) return Restart(worker);
  if (choice < 56) return BeHostile();
  return Deliver(worker);
}

std::string FeedExercise::ChangeCache(FeedWorker& worker) {
  const bool sent = random_.Below(12) != 0;
  const uint64_t choice = random_.Below(40);
  if (choice == 0) {
    worker.Clear(sent);
  } else if (choice < 12) {
    worker.Remove(forest_, random_, sent);
  } else {
    worker.Store(forest_, random_, sent);
  }
  if (!sent) return "never sent";
  return choice == 0 ? "cleared" : choice < 12 ? "removed" : "stored";
}

std::string FeedExercise::Deliver(FeedWorker& worker) {
  if (worker.wire().empty()) return "arrived";
  const FeedWorker::Message message = std::move(worker.wire().front());
  worker.wire().pop_front();
  CacheSync sync;
  if (const auto* event = std::get_if<CacheEvent>(&message)) {
    sync = registry_.ApplyEvents(worker.key(), {event, 1});
  } else {
    sync =
        registry_.ApplySnapshot(worker.key(), std::get<CacheSnapshot>(message));
  }
  if (!sync.resend_from) return "arrived";
  const bool replayed = worker.Resend(*sync.resend_from);
  if (*sync.resend_from == 0) return "asked for all";
  return replayed ? "replayed" : "too old to be replayed";
}

std::string FeedExercise::Restart(FeedWorker& worker) {
  switch (random_.Below(3)) {
    case 0:
      worker.Start(worker.key().name);
      Register(worker.key());
      return "restarted";
    case 1:
      worker.Disconnect();
      Register(worker.key());
      return "connected again";
    default:
      worker.Disconnect();
      registry_.Lose(worker.key(), absl::InternalError("silent"));
      Register(worker.key());
      return "forgotten";
  }
}

std::string FeedExercise::BeHostile() {
  auto hashes = [&] {
    std::vector<BlockHash> some;
    while (random_.Below(5) != 0) some.push_back(HostileHash());
    return some;
  };
  if (random_.Below(4) == 0) {
    CacheSnapshot snapshot;
    snapshot.sequence = random_.Below(100);
    while (random_.Below(4) != 0) {
      snapshot.chains.push_back({HostileHash(), hashes()});
    }
    registry_.ApplySnapshot(hostile_, snapshot);
    return "hostile snapshot";
  }
  const WorkerSlot slot = registry_.Find(hostile_)->slot;
  CacheEvent event;
  event.sequence = registry_.prefixes().ExpectedSequence(slot);
  if (random_.Below(4) == 0) event.sequence = random_.Next();
  if (random_.Below(3) == 0) {
    event.change = BlocksRemoved{hashes()};
  } else {
    event.change = BlocksStored{HostileHash(), hashes()};
  }
  registry_.ApplyEvents(hostile_, {&event, 1});
  return "hostile events";
}

std::string FeedExercise::Settle() {
  for (FeedWorker& worker : workers_) {
    // A gap before the last event shows by one more.
    worker.Nudge();
    while (!worker.wire().empty()) Deliver(worker);
    std::set<BlockHash> held, known;
    for (const auto& [hash, parent] : worker.blocks()) held.insert(hash);
    const WorkerSlot slot = registry_.Find(worker.key())->slot;
    for (const BlocksStored& chain : registry_.prefixes().Dump(slot).chains) {
      known.insert(chain.hashes.begin(), chain.hashes.end());
    }
    CHECK(known == held) << "step " << steps_ << ": " << worker.key().name
                         << " holds " << held.size() << " blocks, not "
                         << known.size();
  }
  registry_.prefixes().CheckStructure();
  return "settled";
}

}  // namespace penstock
