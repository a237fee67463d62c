#include "common/rpc/wire_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/unknown_field_set.h"
#include "google/protobuf/wire_format_lite.h"

namespace penstock {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

bool IsUtf8(const std::string& text) {
  return google::protobuf::internal::WireFormatLite::VerifyUtf8String(
      text.data(), static_cast<int>(text.size()),
      google::protobuf::internal::WireFormatLite::SERIALIZE, nullptr);
}

// The path of the first string field that is no UTF-8; empty: none. `depth`
// bounds the recursion, as the parser of generated messages does.
std::string FindBadString(const std::string& bytes,
                          const Descriptor& descriptor, int depth) {
  UnknownFieldSet fields;
  if (depth == 0 || !fields.ParseFromString(bytes)) return "";
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    if (field.type() != UnknownField::TYPE_LENGTH_DELIMITED) continue;
    const FieldDescriptor* known = descriptor.FindFieldByNumber(field.number());
    if (known == nullptr) continue;
    if (known->type() == FieldDescriptor::TYPE_STRING &&
        !IsUtf8(field.length_delimited())) {
      return known->name();
    }
    if (known->type() == FieldDescriptor::TYPE_MESSAGE) {
      const std::string inner = FindBadString(
          field.length_delimited(), *known->message_type(), depth - 1);
      if (!inner.empty()) return absl::StrCat(known->name(), ".", inner);
    }
  }
  return "";
}

}  // namespace

absl::Status Refuse(absl::string_view field, absl::string_view why) {
  return MakeError(ErrorReason::kInvalidField, absl::StrCat(field, " ", why),
                   field);
}

absl::Status ParseMessage(absl::string_view bytes,
                          google::protobuf::Message* message) {
  if (bytes.size() <= std::numeric_limits<int>::max() &&
      message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::OkStatus();
  }
  const Descriptor& descriptor = *message->GetDescriptor();
  constexpr int kDepth = 16;
  const std::string field =
      FindBadString(std::string(bytes), descriptor, kDepth);
  if (field.empty()) {
    return Refuse(descriptor.full_name(), "does not parse");
  }
  return MakeError(ErrorReason::kPromptNotUtf8,
                   absl::StrCat(field, " is not UTF-8; send text as UTF-8"),
                   field);
}

absl::StatusOr<int> WireCount(absl::string_view field, uint64_t value,
                              int most) {
  if (value > static_cast<uint64_t>(most)) {
    return Refuse(field,
                  absl::StrCat("is ", value, "; it must be at most ", most));
  }
  return static_cast<int>(value);
}

absl::StatusOr<absl::Duration> WireMicros(absl::string_view field,
                                          int64_t micros) {
  const absl::Duration duration = absl::Microseconds(micros);
  if (micros < 0 || duration > kMaxWireDuration) {
    return Refuse(
        field, absl::StrCat("is ", micros, " us; it must be in [0, one year]"));
  }
  return duration;
}

int64_t ToWireMicros(absl::Duration duration) {
  return absl::ToInt64Microseconds(
      std::clamp(duration, absl::ZeroDuration(), kMaxWireDuration));
}

absl::Status CheckName(absl::string_view field, absl::string_view value) {
  if (value.empty()) return Refuse(field, "is empty");
  if (value.size() > kMaxWireName) {
    return Refuse(field, absl::StrCat("has ", value.size(), " bytes; at most ",
                                      kMaxWireName, " are allowed"));
  }
  return absl::OkStatus();
}

}  // namespace penstock
