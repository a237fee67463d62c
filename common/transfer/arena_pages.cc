#include "common/transfer/arena_pages.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"

namespace penstock {

ArenaPages::ArenaPages(Arena arena, KvLayout layout)
    : arena_(arena), layout_(layout) {
  CHECK(layout.block_bytes() > 0) << "a layout without bytes";
  blocks_ = static_cast<BlockIndex>(
      std::min<uint64_t>(arena.bytes.size() / layout.block_bytes(),
                         std::numeric_limits<BlockIndex>::max()));
}

bool ArenaPages::Holds(BlockIndex block, LayerRange layers) const {
  return 0 <= block && block < blocks_ && 0 <= layers.first &&
         layers.first < layers.last && layers.last <= layout_.layers;
}

std::vector<absl::Span<uint8_t>> ArenaPages::Page(BlockIndex block,
                                                  LayerRange layers) const {
  CHECK(Holds(block, layers)) << "block " << block << ", layers ["
                              << layers.first << ", " << layers.last << ")";
  std::vector<absl::Span<uint8_t>> page;
  for (Segment segment : layout_.Segments(block, layers)) {
    page.push_back(arena_.bytes.subspan(segment.offset, segment.length));
  }
  return page;
}

std::vector<absl::Span<const uint8_t>> ReadOnly(
    const std::vector<absl::Span<uint8_t>>& page) {
  return {page.begin(), page.end()};
}

}  // namespace penstock
