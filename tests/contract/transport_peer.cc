// A worker in a process of its own, for tests that kill it.
//
//   transport_peer receive KIND LISTEN
//     opens blocks 0..15 of (request 1, attempt 1) in generation 7, says where
//     it is ("ADDRESS ACCESS_KEY") and takes what comes.
//   transport_peer hold KIND LISTEN
//     the same, but says "held" when the first page has come and lets it go no
//     further.
//   transport_peer send KIND ADDRESS ACCESS_KEY
//     writes its 16 blocks to decode-0 (incarnation 22) over and over.

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "common/base/check.h"
#include "tests/contract/transport_worker.h"

namespace penstock {
namespace {

constexpr TransferId kTransfer{RequestId(1), AttemptId(1)};
constexpr uint32_t kGeneration = 7;
constexpr int kBlocks = 16;

class HoldForever : public PageFaults {
 public:
  void OnLanded(const PageHeader&,
                const std::vector<absl::Span<uint8_t>>&) override {
    std::puts("held");
    std::fflush(stdout);
    while (true) pause();
  }
};

std::unique_ptr<TransportWorker> Make(TransportWorker::Options options) {
  auto worker = TransportWorker::Create(options);
  CHECK(worker.ok()) << worker.status();
  return *std::move(worker);
}

void Receive(TransportKind kind, const std::string& listen, bool hold) {
  TransportWorker::Options options;
  options.kind = kind;
  options.name = "decode-0";
  options.incarnation = Incarnation(22);
  options.listen = listen;
  if (hold) options.faults = std::make_shared<HoldForever>();
  auto worker = Make(options);
  std::vector<BlockRef> blocks;
  for (BlockIndex i = 0; i < kBlocks; ++i) blocks.push_back({i, kGeneration});
  worker->transport().PrepareReceive(kTransfer, blocks);
  TransportAddress address = worker->transport().Describe();
  std::printf("%s %llu\n", address.address.c_str(),
              static_cast<unsigned long long>(address.access_key));
  std::fflush(stdout);
  while (true) pause();
}

void Send(const TransportAddress& address) {
  TransportWorker::Options options;
  options.kind = address.kind;
  options.name = "prefill-0";
  options.incarnation = Incarnation(11);
  auto worker = Make(options);
  WorkerKey peer{"decode-0", address.incarnation};
  CHECK(worker->transport().Connect(peer, address).ok());
  std::vector<PageWrite> writes;
  for (BlockIndex i = 0; i < kBlocks; ++i) {
    worker->Fill(i, i);
    writes.push_back({i, {i, kGeneration}, {0, SmallLayout().layers}});
  }
  while (true) {
    worker->transport().Post(peer, kTransfer, writes, Instant::Infinite());
    CHECK(worker->AwaitCompletion().ok());
  }
}

int Main(int argc, char** argv) {
  // Never longer than the test.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  CHECK(argc >= 3);
  auto kind = ParseTransport(argv[2]);
  CHECK(kind.ok()) << kind.status();
  std::string role = argv[1];
  if (role == "receive" || role == "hold") {
    CHECK(argc == 4);
    Receive(*kind, argv[3], role == "hold");
  }
  CHECK(role == "send" && argc == 5);
  TransportAddress address{*kind, argv[3], Incarnation(22), 0};
  CHECK(absl::SimpleAtoi(argv[4], &address.access_key));
  Send(address);
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) { return penstock::Main(argc, argv); }
