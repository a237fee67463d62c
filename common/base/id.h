#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>

namespace penstock {

// An integer that names one kind of thing: ids of different tags do not mix,
// convert or compare. A value type; 0 is never assigned and means "none".
template <typename Tag, typename Rep = uint64_t>
class Id {
 public:
  using rep = Rep;

  constexpr Id() = default;
  explicit constexpr Id(Rep value) : value_(value) {}

  constexpr Rep value() const { return value_; }
  explicit constexpr operator bool() const { return value_ != 0; }
  friend constexpr auto operator<=>(Id, Id) = default;

  template <typename H>
  friend H AbslHashValue(H h, Id id) {
    return H::combine(std::move(h), id.value_);
  }

 private:
  Rep value_ = 0;
};

// One client request; one try at serving it; one handoff of its KV.
using RequestId = Id<struct RequestTag>;
using AttemptId = Id<struct AttemptTag, uint32_t>;
// A sequence inside one engine.
using SequenceId = Id<struct SequenceTag>;
// Drawn at random at process start: a restart at the same address differs.
using Incarnation = Id<struct IncarnationTag>;
// Layout, content and numerics fingerprints; see common/model/kv_layout.h.
using LayoutId = Id<struct LayoutTag>;
using ContentId = Id<struct ContentTag>;
using NumericsId = Id<struct NumericsTag>;
// A chained, keyed hash of one full token block; see common/model/block_hash.h.
using BlockHash = Id<struct BlockHashTag>;

// A worker as the cluster knows it: a stable name and its current incarnation.
struct WorkerKey {
  std::string name;
  Incarnation incarnation;
  friend auto operator<=>(const WorkerKey&, const WorkerKey&) = default;

  template <typename H>
  friend H AbslHashValue(H h, const WorkerKey& key) {
    return H::combine(std::move(h), key.name, key.incarnation);
  }
};

// One try at moving one request's KV: unique for (request, attempt).
struct TransferId {
  RequestId request;
  AttemptId attempt;
  friend auto operator<=>(const TransferId&, const TransferId&) = default;

  template <typename H>
  friend H AbslHashValue(H h, const TransferId& id) {
    return H::combine(std::move(h), id.request, id.attempt);
  }
};

// A position in the model's vocabulary.
using TokenId = int32_t;

}  // namespace penstock
