// A process that stores pages until it is killed:
//   disk_tier_peer FOLDER uring|threads CHAIN
// Prints the index of each page that was acknowledged, once it was.

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "common/base/check.h"
#include "kvstore/disk/disk_tier.h"
#include "tests/contract/tier_bench.h"

namespace penstock {
namespace {

constexpr int kPages = 4000;

void Say(int page) {
  const std::string line = std::to_string(page) + "\n";
  CHECK(write(STDOUT_FILENO, line.data(), line.size()) > 0);
}

int Main(const std::string& folder, const std::string& io, uint64_t chain) {
  TierBench bench;
  DiskTier::Options options{bench.worker(), folder, uint64_t{64} << 20};
  options.io = io == "uring" ? DiskIo::Kind::kUring : DiskIo::Kind::kThreads;
  options.sync = DiskSync::kNever;
  options.clock = &bench.clock();
  options.slots_per_segment = 100;
  auto tier = DiskTier::Create(std::move(options));
  if (absl::IsUnavailable(tier.status())) return 3;
  CHECK(tier.ok()) << tier.status();
  const auto keys = bench.Chain(chain, kPages);
  std::map<TierTicket, int> under_way;
  std::map<BlockIndex, TierTicket> users;
  int next = 0;
  auto end_one = [&] {
    const TierCompletion done = bench.Await(**tier);
    CHECK(done.status.ok()) << done.status;
    Say(under_way.at(done.ticket));
    under_way.erase(done.ticket);
  };
  while (next < kPages) {
    // Blocks are used in turn: the oldest user of one ends first or is awaited.
    const BlockIndex block = next % 24;
    while (users.contains(block) && under_way.contains(users[block])) end_one();
    bench.Fill(block, keys[next]);
    const TierStored stored =
        (*tier)->Store(keys[next], {block, 1}, absl::Seconds(1));
    if (stored.verdict == TierStoreVerdict::kTaken) {
      under_way[stored.ticket] = next;
      users[block] = stored.ticket;
    }
    ++next;
  }
  while (!under_way.empty()) end_one();
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  CHECK(argc == 4);
  return penstock::Main(argv[1], argv[2], std::strtoull(argv[3], nullptr, 10));
}
