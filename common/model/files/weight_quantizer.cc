#include "common/model/files/weight_quantizer.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/model/files/quantizer.h"
#include "common/model/files/weight_visitor.h"

namespace penstock {
namespace {

// Rows of one matrix, of about as much work as any other piece.
struct Piece {
  const TensorView* from;
  uint8_t* to;  // of the first row
  int64_t first, last;
};

void QuantizePiece(TensorType type, const Piece& piece) {
  const TensorTypeTraits& traits = Traits(type);
  const int64_t cols = piece.from->cols();
  const size_t row_bytes = cols / traits.block_elements * traits.block_bytes;
  std::vector<float> row(cols);
  for (int64_t i = piece.first; i < piece.last; ++i) {
    DequantizeRow(*piece.from, i, absl::MakeSpan(row));
    QuantizeRow(type, row,
                {piece.to + (i - piece.first) * row_bytes, row_bytes});
  }
}

}  // namespace

void QuantizeWeights(TensorType type, const ParallelFor& parallel_for,
                     const LoadProgress& progress, ModelContent& content) {
  constexpr int64_t kPieceElements = 1 << 20;
  CHECK(CanQuantizeTo(type));
  const TensorTypeTraits& traits = Traits(type);
  std::vector<std::pair<TensorView*, TensorView>> changes;
  std::vector<Piece> pieces;
  uint64_t total = 0;
  VisitTensors(
      content.weights, content.spec.tied_head,
      [&](TensorView& tensor, TensorRole role) {
        TensorView* view = &tensor;
        if (role != TensorRole::kMatrix || view->type == type ||
            view->cols() % traits.block_elements != 0) {
          return;
        }
        const int64_t rows = view->rows(), cols = view->cols();
        const size_t row_bytes =
            cols / traits.block_elements * traits.block_bytes;
        uint8_t* to =
            content.derived
                .emplace_back(
                    std::make_unique_for_overwrite<uint8_t[]>(rows * row_bytes))
                .get();
        TensorView changed = *view;
        changed.type = type;
        changed.data = {to, rows * row_bytes};
        changes.emplace_back(view, std::move(changed));
        total += view->data.size();
        const int64_t step = std::max<int64_t>(1, kPieceElements / cols);
        for (int64_t first = 0; first < rows; first += step) {
          pieces.push_back({.from = view,
                            .to = to + first * row_bytes,
                            .first = first,
                            .last = std::min(rows, first + step)});
        }
      });
  parallel_for(static_cast<int64_t>(pieces.size()), [&](int64_t i) {
    const Piece& piece = pieces[i];
    QuantizePiece(type, piece);
    if (progress) {
      progress("quantising",
               piece.from->data.size() / piece.from->rows() *
                   (piece.last - piece.first),
               total);
    }
  });
  for (auto& [view, changed] : changes) *view = std::move(changed);
  if (content.spec.tied_head) {
    content.weights.output = content.weights.token_embedding;
  }
}

}  // namespace penstock
