#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "common/env/clock.h"

namespace penstock {

class SimNetwork;
struct SimNode;

// What one side of a stream does with what it hears. Owned by the stream until
// it is closed, destroyed right after OnClosed.
class SimStreamHandler {
 public:
  virtual ~SimStreamHandler() = default;
  // Once, whoever closed it; not when the own process dies.
  virtual void OnClosed(const absl::Status& status) = 0;
};

// A reliable, ordered stream between the processes of two hosts, as gRPC gives
// it: messages wait while the path is blocked, and a side whose keepalives are
// missed breaks it. Made by SimNetwork::Open. Single-threaded.
class SimStream : public std::enable_shared_from_this<SimStream> {
 public:
  enum Side { kClient = 0, kServer = 1 };
  enum class Kind {
    kControl,  // has keepalives; may break by chance
    kData,     // waits as long as it has to
    kLocal,    // within one machine: no path fault touches it
  };
  static Side Other(Side side) { return side == kClient ? kServer : kClient; }

  // A message: what the other side's handler does with it.
  using Message = std::function<void(SimStreamHandler&)>;
  // Made in the server's process when the stream reaches it. Null: it closed
  // the stream.
  using Accept = std::function<std::unique_ptr<SimStreamHandler>(
      std::shared_ptr<SimStream>)>;

  // No-op once closed. `arrival`: not before.
  void Send(Side from, Message message, Instant arrival = Instant());

  // Ends it. The other side hears `status` after all that was sent before; this
  // one soon, never from inside the call.
  void Close(Side side, const absl::Status& status);

  // Both sides lose it, and what is on its way.
  void Break(const absl::Status& status);

  bool open(Side side) const { return ends_[side].open; }

 private:
  friend class SimNetwork;

  struct End {
    SimNode* node = nullptr;
    uint64_t life = 0;  // of the process; 0: not bound to one yet
    bool open = true;
    std::unique_ptr<SimStreamHandler> handler;
    std::optional<Instant> silent_since;
  };
  struct Item {
    Instant arrival;
    Message message;  // null: the stream's end
    absl::Status status;
  };
  struct Direction {
    std::deque<Item> queue;
    Instant last_arrival;
  };

  SimStream(SimNetwork* network, uint64_t id, Kind kind, Accept accept)
      : network_(network), id_(id), kind_(kind), accept_(std::move(accept)) {}

  void Push(Side from, Item item);
  // Delivers what has arrived, unless the path is blocked.
  void Pump(Side from);
  void Deliver(Side to, Item item);
  void Receive(Side to, const Item& item);
  void EndSide(Side side, const absl::Status& status);
  // The path or a host has changed.
  void Refresh();
  void CheckSilence(Side side, Instant since);
  // The process at this end died.
  void Die(Side side);
  void ForgetIfOver();

  SimNetwork* network_;
  const uint64_t id_;
  const Kind kind_;
  Accept accept_;
  bool broken_ = false;
  std::array<End, 2> ends_;
  std::array<Direction, 2> directions_;  // by the side that sends
};

}  // namespace penstock
