#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kvstore/core/store_message.h"

namespace penstock {

// The messages of kvstore/core/store_message.h as bytes. Encoding never fails;
// decoding checks everything: INVALID_ARGUMENT names the field,
// FAILED_PRECONDITION says that the protocol ranges do not meet.
std::string EncodeStoreRequest(const StoreRequest& request);
absl::StatusOr<StoreRequest> DecodeStoreRequest(absl::string_view bytes);
std::string EncodeStoreReply(const StoreReply& reply);
absl::StatusOr<StoreReply> DecodeStoreReply(absl::string_view bytes);

// What GetStats tells of a store.
struct StoreReport {
  int workers = 0;
  uint64_t memory_pages = 0;
  uint64_t memory_page_limit = 0;
  uint64_t disk_pages = 0;
  uint64_t disk_bytes = 0;
  uint64_t puts = 0;  // pages that came
  uint64_t gets = 0;  // pages that were asked for
  uint64_t get_hits = 0;
  uint64_t bad_pages = 0;
  uint64_t evicted = 0;  // from memory
  TierIdentity identity;  // zeros: no worker has come yet
};
std::string EncodeStoreReport(const StoreReport& report);

}  // namespace penstock
