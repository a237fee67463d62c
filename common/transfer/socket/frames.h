#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/model/block_hash.h"
#include "common/transfer/kv_transport.h"
#include "common/transfer/page_header.h"

namespace penstock {

// What data connections say besides pages. Part of the wire contract, frozen
// by test vectors; integers are little-endian; every frame begins with
//   0 magic (4 letters)   4 version (u16)   6 frame bytes (u16)
//
//   destination -> source   Challenge "PKVC", 32 bytes
//   source -> destination   Hello     "PKVH", 200 bytes
//   destination -> source   Verdict   "PKVV", 32 bytes
//   source -> destination   pages, each with a PageHeader in front
//   destination -> source   Ack       "PKVA", 32 bytes, one for each page
//
// The proofs are XXH3-64 keyed with the cluster key over the peer's nonce: they
// keep apart clusters, incarnations and strangers on a shared network; they
// are no cryptographic signature, and nothing is encrypted.
inline constexpr uint16_t kFrameVersion = 1;
inline constexpr size_t kShortFrameBytes = 32;
inline constexpr size_t kHelloBytes = 200;
inline constexpr size_t kMaxSourceName = 128;

using ShortFrame = std::array<uint8_t, kShortFrameBytes>;
using Nonce = std::array<uint8_t, 16>;

//   8 nonce (16 bytes)  24 zero (8 bytes)
struct Challenge {
  Nonce nonce{};
};
ShortFrame EncodeChallenge(const Challenge& challenge);
// INVALID_ARGUMENT here and below: not such a frame, or of another version.
absl::StatusOr<Challenge> DecodeChallenge(absl::Span<const uint8_t> frame);

//   8 transport kind (u32)  12 name length (u32)
//  16 incarnation of the source (u64)  24 of the destination (u64)
//  32 layout id (u64)  40 nonce (16 bytes)  56 name (128 bytes, zero-padded)
// 184 proof of the cluster key (u64): over the challenge's nonce, bytes 0..183
// 192 proof of access (u64): over the same and the access key
struct Hello {
  TransportKind kind = TransportKind::kInproc;
  WorkerKey source;
  Incarnation destination;
  LayoutId layout;
  Nonce nonce{};
};
// What Hello and Verdict are proved with.
struct Proof {
  Nonce challenge{};
  uint64_t access_key = 0;
};
using HelloFrame = std::array<uint8_t, kHelloBytes>;
// Precondition: the source's name has at most kMaxSourceName bytes.
HelloFrame EncodeHello(const Hello& hello, const Proof& proof,
                       const BlockHasher& hasher);

// How the destination answers; append only.
enum class Verdict {
  kWelcome,
  kNotAuthorised,     // another cluster key or access key
  kWrongKind,         // another transport listens here
  kWrongIncarnation,  // that worker has restarted
  kWrongLayout,
  kDropped,         // this incarnation of the source was dropped
  kUnusableMemory,  // the memory that came with the hello
};
inline constexpr int kVerdicts = 7;

// A hello, and what to answer as far as it alone tells: kWelcome,
// kNotAuthorised, kWrongKind, kWrongIncarnation or kWrongLayout.
struct ReadHello {
  Hello hello;
  Verdict verdict = Verdict::kWelcome;
};
struct HelloExpectation {
  TransportKind kind = TransportKind::kInproc;
  Incarnation self;
  LayoutId layout;
};
absl::StatusOr<ReadHello> DecodeHello(absl::Span<const uint8_t> frame,
                                      const HelloExpectation& expected,
                                      const Proof& proof,
                                      const BlockHasher& hasher);

//   8 verdict (u32)  12 zero (12 bytes)
//  24 proof of the cluster key (u64): over both nonces and bytes 0..23
ShortFrame EncodeVerdict(Verdict verdict, const Nonce& challenge,
                         const Nonce& hello, const BlockHasher& hasher);
// PERMISSION_DENIED also when the other side does not hold the cluster key.
// Any verdict but kWelcome is an error: what the source's posts complete with.
absl::Status DecodeVerdict(absl::Span<const uint8_t> frame,
                           const Nonce& challenge, const Nonce& hello,
                           const BlockHasher& hasher);

//   8 sequence of the page (u64)  16 fate (u32): 0 landed, else 1 + refusal
//  20 zero (u32)  24 keyed checksum of bytes 0..23 (u64)
struct PageAck {
  uint64_t sequence = 0;
  std::optional<PageRefusal> refusal;
};
ShortFrame EncodeAck(const PageAck& ack, const BlockHasher& hasher);
absl::StatusOr<PageAck> DecodeAck(absl::Span<const uint8_t> frame,
                                  const BlockHasher& hasher);

}  // namespace penstock
