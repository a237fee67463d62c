#include "kvstore/server/store_host.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/env/real/entropy.h"
#include "common/transfer/set/transport_set.h"

namespace penstock {

StoreHost::StoreHost(StoreHostOptions options, const Clock* clock,
                     std::function<void()> wake)
    : options_(std::move(options)),
      clock_(clock),
      wake_(std::move(wake)),
      hasher_(HashSecret(options_.cluster_key)) {}

StoreHost::~StoreHost() = default;

absl::Status StoreHost::Prepare(const StoreHello& hello) {
  if (core_ != nullptr) return absl::OkStatus();
  const uint64_t block = hello.layout.block_bytes();
  // Block indices are 32 bits.
  const uint64_t blocks =
      std::min<uint64_t>(options_.memory_bytes / block, uint64_t{1} << 30);
  if (blocks == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory is ", options_.memory_bytes,
                     " bytes; one page of this model takes ", block));
  }
  // An earlier try may have ended half-way.
  disk_.reset();
  transports_.clear();
  identity_ = {hello.layout.id(), hello.content, hello.numerics};
  ASSIGN_OR_RETURN(memory_, ArenaMemory::Create(blocks * block));
  TransportOptions worker;
  worker.self = options_.self;
  worker.arena = memory_->arena();
  worker.layout = hello.layout;
  worker.hasher = hasher_;
  worker.wake = wake_;
  worker.clock = clock_;
  worker.entropy = DrawEntropy;
  ASSIGN_OR_RETURN(
      transports_,
      MakeTransports({std::move(worker), options_.transports,
                      options_.data_listen, options_.data_advertised_host}));
  const ArenaPages pages(memory_->arena(), hello.layout);
  if (!options_.disk_directory.empty()) {
    ASSIGN_OR_RETURN(
        disk_, DiskTier::Create({.worker = {identity_, pages, hasher_, wake_},
                                 .directory = options_.disk_directory,
                                 .max_bytes = options_.disk_bytes,
                                 .clock = clock_}));
  }
  StoreCore::Ports ports{pages, hasher_, {}, disk_.get(), clock_};
  for (const auto& transport : transports_) {
    ports.transports.push_back(transport.get());
  }
  StoreCore::Options core;
  core.self = options_.self;
  core.identity = identity_;
  core.limit = options_.limit;
  core_ = std::make_unique<StoreCore>(std::move(core), std::move(ports));
  Log(LogLevel::kInfo, "store opened",
      {{"blocks", absl::StrCat(blocks)},
       {"pages_on_disk", absl::StrCat(disk_stats().pages)}});
  return absl::OkStatus();
}

void StoreHost::Tick() {
  if (core_ == nullptr) return;
  while (core_->Tick()) {
  }
}

}  // namespace penstock
