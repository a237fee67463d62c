#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/peer/error_reason.h"
#include "gtest/gtest.h"

namespace penstock {

// What the tests of the wire share.

inline constexpr uint64_t kBig = 0xfedc'ba98'7654'3210;

inline void ExpectRefused(const absl::Status& status, absl::string_view field) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(ErrorInfoOf(status).field, field) << status;
}

// A message's bytes with one part of a proto changed.
template <typename Proto, typename Change>
std::string Changed(const std::string& bytes, Change change) {
  Proto proto;
  EXPECT_TRUE(proto.ParseFromString(bytes));
  change(proto);
  return proto.SerializeAsString();
}

}  // namespace penstock
