#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/transfer/page_header.h"
#include "tools/simulator/sim_transport.h"

namespace penstock {

// A page on its way, and its place in the network's list of those.
struct SimTransport::Page {
  using List = std::map<uint64_t, PageInFlight>;

  Page() = default;
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  ~Page() {
    if (list != nullptr) list->erase(ticket);
  }

  void Enlist(std::shared_ptr<List> where, uint64_t number,
              PageInFlight entry) {
    list = std::move(where);
    ticket = number;
    list->emplace(ticket, std::move(entry));
  }
  // The same page once more; nobody waits for its acknowledgement.
  PagePtr Twin(uint64_t number) const {
    auto twin = std::make_shared<Page>();
    twin->source = source;
    twin->destination = destination;
    twin->header = header;
    twin->payload = payload;
    twin->post = post;
    twin->acknowledge = false;
    twin->Enlist(list, number, list->at(ticket));
    return twin;
  }
  // Its source has made sure that it cannot land any more.
  void Flush() {
    flushed = true;
    list->erase(ticket);
  }

  WorkerKey source, destination;
  PageHeader header;
  std::vector<uint8_t> payload;
  PostId post = 0;
  bool acknowledge = true;
  bool flushed = false;
  std::shared_ptr<List> list;
  uint64_t ticket = 0;
};

// The source's side of a data connection.
class SimTransport::Outbound : public SimStreamHandler {
 public:
  Outbound(SimTransport* transport, WorkerKey peer)
      : transport_(transport), peer_(std::move(peer)) {}
  void OnAck(PostId post, uint64_t bytes, const absl::Status& verdict) {
    transport_->OnAck(post, bytes, verdict);
  }
  void OnClosed(const absl::Status& status) override {
    transport_->OnStreamLost(peer_, status);
  }

 private:
  SimTransport* transport_;
  const WorkerKey peer_;
};

// The destination's side.
class SimTransport::Inbound : public SimStreamHandler {
 public:
  Inbound(SimTransport* transport, const std::shared_ptr<SimStream>& stream)
      : transport_(transport), stream_(stream) {}
  void OnPage(PagePtr page) {
    transport_->Receive(std::move(page), channel_, stream_.lock());
  }
  void OnClosed(const absl::Status& status) override {}

 private:
  SimTransport* transport_;
  const std::weak_ptr<SimStream> stream_;  // its owner
  ReceiveChannel channel_;
};

}  // namespace penstock
