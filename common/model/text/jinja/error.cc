#include "common/model/text/jinja/error.h"

#include "absl/strings/str_cat.h"

namespace penstock::jinja {
namespace {

// Errors quote templates and messages, which may be long.
constexpr size_t kMaxMessage = 512;

std::string Message(int line, absl::string_view what) {
  return absl::StrCat("chat template, line ", line, ": ",
                      what.substr(0, kMaxMessage));
}

}  // namespace

absl::Status Failure(int line, absl::string_view what) {
  return absl::InvalidArgumentError(Message(line, what));
}

absl::Status Unknown(int line, absl::string_view construct) {
  return absl::UnimplementedError(
      Message(line, absl::StrCat(construct, " is not known to this build")));
}

absl::Status Exhausted(int line, absl::string_view what) {
  return absl::ResourceExhaustedError(Message(line, what));
}

}  // namespace penstock::jinja
