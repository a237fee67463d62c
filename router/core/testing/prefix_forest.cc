#include "router/core/testing/prefix_forest.h"

#include <algorithm>

namespace penstock {
namespace {

// Differs for every block, and looks random.
BlockHash HashOf(size_t chain, size_t depth) {
  uint64_t hash = (uint64_t{chain + 1} << 20 | depth) * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 29;
  hash *= 0xbf58476d1ce4e5b9u;
  hash ^= hash >> 32;
  return BlockHash(hash);
}

}  // namespace

PrefixForest::PrefixForest(Random& random, size_t chains, size_t usual_length,
                           size_t greatest_length) {
  for (size_t i = 0; i < chains; ++i) {
    Chain chain;
    chain.length = 1 + random.Below(random.Below(10) == 0 ? greatest_length
                                                          : usual_length);
    if (i > 0 && random.Below(4) != 0) {
      chain.rooted = false;
      chain.stem = RandomNode(random);
    }
    chains_.push_back(chain);
  }
}

PrefixForest::Node PrefixForest::RandomNode(Random& random) const {
  const size_t chain = random.Below(chains_.size());
  return {chain, random.Below(chains_[chain].length)};
}

std::vector<BlockHash> PrefixForest::PathTo(Node node) const {
  std::vector<BlockHash> path;
  for (;;) {
    for (size_t depth = node.depth + 1; depth-- > 0;) {
      path.push_back(HashOf(node.chain, depth));
    }
    if (chains_[node.chain].rooted) break;
    node = chains_[node.chain].stem;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<BlockHash> PrefixForest::Unknown(Random& random) const {
  std::vector<BlockHash> path = PathTo(RandomNode(random));
  const size_t extra = 1 + random.Below(4);
  for (size_t i = 0; i < extra; ++i) {
    path.push_back(HashOf(chains_.size() + random.Below(1000), i));
  }
  return path;
}

}  // namespace penstock
