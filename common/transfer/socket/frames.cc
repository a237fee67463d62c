#include "common/transfer/socket/frames.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/transfer/little_endian.h"

namespace penstock {
namespace {

constexpr char kChallengeMagic[] = "PKVC";
constexpr char kHelloMagic[] = "PKVH";
constexpr char kVerdictMagic[] = "PKVV";
constexpr char kAckMagic[] = "PKVA";

constexpr size_t kNameAt = 56;
constexpr size_t kClusterProofAt = kNameAt + kMaxSourceName;
constexpr size_t kAccessProofAt = kClusterProofAt + 8;
static_assert(kAccessProofAt + 8 == kHelloBytes);
constexpr size_t kShortProofAt = kShortFrameBytes - 8;

void Begin(const char* magic, absl::Span<uint8_t> frame) {
  std::fill(frame.begin(), frame.end(), 0);
  std::memcpy(frame.data(), magic, 4);
  StoreLittleEndian<uint16_t>(kFrameVersion, &frame[4]);
  StoreLittleEndian<uint16_t>(frame.size(), &frame[6]);
}

absl::Status CheckBegin(const char* magic, size_t bytes,
                        absl::Span<const uint8_t> frame) {
  if (frame.size() != bytes || std::memcmp(frame.data(), magic, 4) != 0 ||
      LoadLittleEndian<uint16_t>(&frame[6]) != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a ", magic, " frame"));
  }
  uint16_t version = LoadLittleEndian<uint16_t>(&frame[4]);
  if (version != kFrameVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat(magic, " frame of version ", version, "; only ",
                     kFrameVersion, " is spoken here"));
  }
  return absl::OkStatus();
}

uint64_t ClusterProof(const Nonce& challenge, absl::Span<const uint8_t> frame,
                      const BlockHasher& hasher) {
  absl::Span<const uint8_t> pieces[] = {challenge,
                                        frame.first(kClusterProofAt)};
  return hasher.ChecksumPieces(pieces);
}

uint64_t AccessProof(const Proof& proof, absl::Span<const uint8_t> frame,
                     const BlockHasher& hasher) {
  uint8_t key[8];
  StoreLittleEndian<uint64_t>(proof.access_key, key);
  absl::Span<const uint8_t> pieces[] = {proof.challenge,
                                        frame.first(kClusterProofAt), key};
  return hasher.ChecksumPieces(pieces);
}

uint64_t VerdictProof(const Nonce& challenge, const Nonce& hello,
                      absl::Span<const uint8_t> frame,
                      const BlockHasher& hasher) {
  absl::Span<const uint8_t> pieces[] = {challenge, hello,
                                        frame.first(kShortProofAt)};
  return hasher.ChecksumPieces(pieces);
}

absl::Status VerdictStatus(Verdict verdict) {
  switch (verdict) {
    case Verdict::kWelcome:
      return absl::OkStatus();
    case Verdict::kNotAuthorised:
      return absl::PermissionDeniedError(
          "peer refuses the cluster key or the access key");
    case Verdict::kWrongKind:
      return absl::FailedPreconditionError(
          "another transport listens at the peer's address");
    case Verdict::kWrongIncarnation:
      return RefusalStatus(PageRefusal::kWrongIncarnation,
                           "peer has restarted");
    case Verdict::kWrongLayout:
      return RefusalStatus(
          PageRefusal::kWrongLayout,
          "peer's KV layout differs, as with another --kv-type");
    case Verdict::kDropped:
      return absl::UnavailableError("peer has dropped this worker");
    case Verdict::kUnusableMemory:
      return absl::FailedPreconditionError(
          "peer cannot use this worker's shared memory");
  }
  return absl::InternalError("verdict out of range");
}

}  // namespace

ShortFrame EncodeChallenge(const Challenge& challenge) {
  ShortFrame frame;
  Begin(kChallengeMagic, absl::MakeSpan(frame));
  std::copy(challenge.nonce.begin(), challenge.nonce.end(), &frame[8]);
  return frame;
}

absl::StatusOr<Challenge> DecodeChallenge(absl::Span<const uint8_t> frame) {
  RETURN_IF_ERROR(CheckBegin(kChallengeMagic, kShortFrameBytes, frame));
  Challenge challenge;
  std::copy_n(&frame[8], challenge.nonce.size(), challenge.nonce.begin());
  return challenge;
}

HelloFrame EncodeHello(const Hello& hello, const Proof& proof,
                       const BlockHasher& hasher) {
  const std::string& name = hello.source.name;
  CHECK(name.size() <= kMaxSourceName) << name;
  HelloFrame frame;
  Begin(kHelloMagic, absl::MakeSpan(frame));
  StoreLittleEndian<uint32_t>(static_cast<uint32_t>(hello.kind), &frame[8]);
  StoreLittleEndian<uint32_t>(name.size(), &frame[12]);
  StoreLittleEndian<uint64_t>(hello.source.incarnation.value(), &frame[16]);
  StoreLittleEndian<uint64_t>(hello.destination.value(), &frame[24]);
  StoreLittleEndian<uint64_t>(hello.layout.value(), &frame[32]);
  std::copy(hello.nonce.begin(), hello.nonce.end(), &frame[40]);
  std::copy(name.begin(), name.end(), &frame[kNameAt]);
  StoreLittleEndian<uint64_t>(ClusterProof(proof.challenge, frame, hasher),
                              &frame[kClusterProofAt]);
  StoreLittleEndian<uint64_t>(AccessProof(proof, frame, hasher),
                              &frame[kAccessProofAt]);
  return frame;
}

absl::StatusOr<ReadHello> DecodeHello(absl::Span<const uint8_t> frame,
                                      const HelloExpectation& expected,
                                      const Proof& proof,
                                      const BlockHasher& hasher) {
  RETURN_IF_ERROR(CheckBegin(kHelloMagic, kHelloBytes, frame));
  uint32_t name_bytes = LoadLittleEndian<uint32_t>(&frame[12]);
  if (name_bytes > kMaxSourceName) {
    return absl::InvalidArgumentError("name in a hello is too long");
  }
  ReadHello read;
  Hello& hello = read.hello;
  hello.source.name.assign(reinterpret_cast<const char*>(&frame[kNameAt]),
                           name_bytes);
  hello.source.incarnation =
      Incarnation(LoadLittleEndian<uint64_t>(&frame[16]));
  hello.destination = Incarnation(LoadLittleEndian<uint64_t>(&frame[24]));
  hello.layout = LayoutId(LoadLittleEndian<uint64_t>(&frame[32]));
  std::copy_n(&frame[40], hello.nonce.size(), hello.nonce.begin());
  // What names the mistake comes first: a peer that knows an earlier
  // incarnation has an old access key, too.
  if (LoadLittleEndian<uint64_t>(&frame[kClusterProofAt]) !=
      ClusterProof(proof.challenge, frame, hasher)) {
    read.verdict = Verdict::kNotAuthorised;
  } else if (LoadLittleEndian<uint32_t>(&frame[8]) !=
             static_cast<uint32_t>(expected.kind)) {
    read.verdict = Verdict::kWrongKind;
  } else if (hello.destination != expected.self) {
    read.verdict = Verdict::kWrongIncarnation;
  } else if (hello.layout != expected.layout) {
    read.verdict = Verdict::kWrongLayout;
  } else if (LoadLittleEndian<uint64_t>(&frame[kAccessProofAt]) !=
             AccessProof(proof, frame, hasher)) {
    read.verdict = Verdict::kNotAuthorised;
  }
  hello.kind = expected.kind;
  return read;
}

ShortFrame EncodeVerdict(Verdict verdict, const Nonce& challenge,
                         const Nonce& hello, const BlockHasher& hasher) {
  ShortFrame frame;
  Begin(kVerdictMagic, absl::MakeSpan(frame));
  StoreLittleEndian<uint32_t>(static_cast<uint32_t>(verdict), &frame[8]);
  StoreLittleEndian<uint64_t>(VerdictProof(challenge, hello, frame, hasher),
                              &frame[kShortProofAt]);
  return frame;
}

absl::Status DecodeVerdict(absl::Span<const uint8_t> frame,
                           const Nonce& challenge, const Nonce& hello,
                           const BlockHasher& hasher) {
  RETURN_IF_ERROR(CheckBegin(kVerdictMagic, kShortFrameBytes, frame));
  if (LoadLittleEndian<uint64_t>(&frame[kShortProofAt]) !=
      VerdictProof(challenge, hello, frame, hasher)) {
    return absl::PermissionDeniedError("peer has another cluster key");
  }
  uint32_t verdict = LoadLittleEndian<uint32_t>(&frame[8]);
  if (verdict >= kVerdicts) {
    return absl::InvalidArgumentError(absl::StrCat("verdict ", verdict));
  }
  return VerdictStatus(static_cast<Verdict>(verdict));
}

ShortFrame EncodeAck(const PageAck& ack, const BlockHasher& hasher) {
  ShortFrame frame;
  Begin(kAckMagic, absl::MakeSpan(frame));
  StoreLittleEndian<uint64_t>(ack.sequence, &frame[8]);
  StoreLittleEndian<uint32_t>(
      ack.refusal ? 1 + static_cast<uint32_t>(*ack.refusal) : 0, &frame[16]);
  StoreLittleEndian<uint64_t>(
      hasher.Checksum(absl::MakeConstSpan(frame).first(kShortProofAt)),
      &frame[kShortProofAt]);
  return frame;
}

absl::StatusOr<PageAck> DecodeAck(absl::Span<const uint8_t> frame,
                                  const BlockHasher& hasher) {
  RETURN_IF_ERROR(CheckBegin(kAckMagic, kShortFrameBytes, frame));
  uint32_t fate = LoadLittleEndian<uint32_t>(&frame[16]);
  if (LoadLittleEndian<uint64_t>(&frame[kShortProofAt]) !=
          hasher.Checksum(frame.first(kShortProofAt)) ||
      fate > kPageRefusals) {
    return absl::InvalidArgumentError("damaged ack");
  }
  PageAck ack;
  ack.sequence = LoadLittleEndian<uint64_t>(&frame[8]);
  if (fate > 0) ack.refusal = static_cast<PageRefusal>(fate - 1);
  return ack;
}

}  // namespace penstock
