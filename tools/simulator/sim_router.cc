#include "tools/simulator/sim_router.h"

#include <utility>

#include "common/base/check.h"

namespace penstock {

SimRouter::SimRouter(const RouterCore::Options& options, WorkerKey self,
                     uint64_t seed, const Ports& ports)
    : self_(std::move(self)),
      network_(ports.network),
      random_(seed),
      legs_(ports.network, self_.name, ports.find) {
  RouterCore::Ports core;
  core.clock = &ports.host->clock();
  core.timers = &ports.host->timers();
  core.random = &random_;
  core.hasher = ports.hasher;
  core.policy = ports.policy;
  core.legs = &legs_;
  core.probe = ports.probe;
  auto created = RouterCore::Create(options, core);
  CHECK(created.ok()) << created.status().ToString();
  core_ = *std::move(created);
  legs_.set_core(core_.get());
  registrar_ = std::make_unique<SimRegistrar>(core_.get());
  SimNetwork::Host attached;
  attached.key = self_;
  attached.host = ports.host;
  network_->Attach(std::move(attached));
}

SimRouter::~SimRouter() { network_->Kill(self_); }

}  // namespace penstock
