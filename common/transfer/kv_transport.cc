#include "common/transfer/kv_transport.h"

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr TransportKind kKinds[] = {TransportKind::kInproc, TransportKind::kShm,
                                    TransportKind::kTcp};

}  // namespace

const char* TransportName(TransportKind kind) {
  switch (kind) {
    case TransportKind::kInproc:
      return "inproc";
    case TransportKind::kShm:
      return "shm";
    case TransportKind::kTcp:
      return "tcp";
  }
  return "unknown";
}

absl::StatusOr<TransportKind> ParseTransport(absl::string_view name) {
  for (TransportKind kind : kKinds) {
    if (name == TransportName(kind)) return kind;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "transport \"", name, "\" is not known; use inproc, shm or tcp"));
}

}  // namespace penstock
