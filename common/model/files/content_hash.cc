#include "common/model/files/content_hash.h"

#include <algorithm>

#include "xxhash.h"

namespace penstock {

ContentId HashContent(const std::vector<absl::Span<const uint8_t>>& files,
                      uint64_t salt, const ParallelFor& parallel_for,
                      const LoadProgress& progress) {
  constexpr size_t kPiece = 16 << 20;
  std::vector<absl::Span<const uint8_t>> pieces;
  std::vector<uint64_t> summary = {salt};
  uint64_t total = 0;
  for (absl::Span<const uint8_t> file : files) {
    summary.push_back(file.size());
    total += file.size();
    for (size_t at = 0; at < file.size(); at += kPiece) {
      pieces.push_back(file.subspan(at, kPiece));
    }
  }
  const size_t first = summary.size();
  summary.resize(first + pieces.size());
  parallel_for(static_cast<int64_t>(pieces.size()), [&](int64_t i) {
    summary[first + i] = XXH3_64bits(pieces[i].data(), pieces[i].size());
    if (progress) progress("reading", pieces[i].size(), total);
  });
  const uint64_t hash =
      XXH3_64bits(summary.data(), summary.size() * sizeof(uint64_t));
  return ContentId(hash == 0 ? 1 : hash);
}

}  // namespace penstock
