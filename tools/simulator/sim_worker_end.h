#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "tools/simulator/sim_stream.h"

namespace penstock {

// A worker's end of its registration; what the router sends is for it.
class SimWorkerEnd : public SimStreamHandler {
 public:
  struct Events {
    std::function<void()> on_welcome;
    std::function<void(uint64_t from)> on_replay;
    std::function<void()> on_closed;
  };
  explicit SimWorkerEnd(Events events) : events_(std::move(events)) {}

  void Welcome() { events_.on_welcome(); }
  void Replay(uint64_t from) { events_.on_replay(from); }
  void OnClosed(const absl::Status& status) override { events_.on_closed(); }

 private:
  const Events events_;
};

}  // namespace penstock
