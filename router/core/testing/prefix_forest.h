#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/id.h"
#include "common/env/random.h"

namespace penstock {

// Prefixes to index: chains of blocks that begin anew or branch off from
// earlier ones. Hashes stand for their whole prefix, as real ones do. A value.
class PrefixForest {
 public:
  // A block: its chain, and how far down that.
  struct Node {
    size_t chain = 0;
    size_t depth = 0;
  };

  // Most chains have up to `usual_length` blocks, one of ten up to
  // `greatest_length`.
  PrefixForest(Random& random, size_t chains, size_t usual_length,
               size_t greatest_length);

  Node RandomNode(Random& random) const;
  // From the first block of its prefix to the node. Its parent is the one
  // before.
  std::vector<BlockHash> PathTo(Node node) const;
  // The node's path, beyond the end of its chain too: blocks that are in no
  // path of the forest.
  std::vector<BlockHash> Unknown(Random& random) const;
  size_t chains() const { return chains_.size(); }

 private:
  struct Chain {
    Node stem;           // what it hangs below, if anything
    bool rooted = true;  // it begins anew
    size_t length = 0;
  };

  std::vector<Chain> chains_;
};

}  // namespace penstock
