#include "common/model/text/jinja/text_functions.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/printer.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

// `fresh` before each character and at the end, `left` times at most.
absl::StatusOr<Value> Interleaved(const Text& text, const Text& fresh,
                                  int64_t left, const Invocation& call) {
  RETURN_IF_ERROR(call.budget.TakeBytes(text.size(), call.line));
  Text out;
  for (size_t at = 0; at <= text.size();) {
    if (left-- > 0) {
      RETURN_IF_ERROR(call.budget.TakeBytes(fresh.size(), call.line));
      out.Append(fresh);
    }
    if (at == text.size()) break;
    const size_t end = at + Utf8Length(text.bytes(), at);
    out.Append(text, at, end);
    at = end;
  }
  return Value(std::move(out));
}

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

}  // namespace

absl::StatusOr<Value> Trim(const Text& text, Side side,
                           const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"chars"}, 0));
  RETURN_IF_ERROR(call.budget.TakeBytes(text.size(), call.line));
  ASSIGN_OR_RETURN(const Text chars, TextArgument(call, bound[0], ""));
  const bool given = bound[0] != nullptr && !bound[0]->is_none();
  if (given && chars.empty()) return Value(text);
  RETURN_IF_ERROR(
      TakeSearch(text.bytes(), chars.bytes(), call.budget, call.line));
  const Range left = Stripped(text.bytes(), side, chars.bytes());
  return Value(text.Slice(left.begin, left.end));
}

absl::StatusOr<Value> Replace(const Text& text, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"old", "new", "count"}, 2));
  if (bound[0]->text() == nullptr || bound[1]->text() == nullptr) {
    return call.Fail("takes two strs");
  }
  const absl::string_view old = bound[0]->text()->bytes();
  const Text& fresh = *bound[1]->text();
  ASSIGN_OR_RETURN(int64_t left, IntegerArgument(call, bound[2], -1));
  if (left < 0) left = kAll;
  if (old.empty()) return Interleaved(text, fresh, left, call);
  RETURN_IF_ERROR(TakeSearch(text.bytes(), old, call.budget, call.line));
  Text replaced;
  size_t begin = 0;
  for (; left > 0; --left) {
    const size_t at = text.bytes().find(old, begin);
    if (at == absl::string_view::npos) break;
    RETURN_IF_ERROR(
        call.budget.TakeBytes(at - begin + fresh.size(), call.line));
    replaced.Append(text, begin, at);
    replaced.Append(fresh);
    begin = at + old.size();
  }
  RETURN_IF_ERROR(call.budget.TakeBytes(text.size() - begin, call.line));
  replaced.Append(text, begin, text.size());
  return Value(std::move(replaced));
}

absl::StatusOr<Value> Padded(const Text& text, Side side, int64_t width,
                             const Text& fill, const Invocation& call) {
  RETURN_IF_ERROR(call.budget.TakeBytes(text.size(), call.line));
  const auto size = static_cast<int64_t>(CountUtf8(text.bytes()));
  if (width <= size) return Value(text);
  const int64_t missing = width - size;
  RETURN_IF_ERROR(
      call.budget.TakeBytes(static_cast<size_t>(missing), call.line));
  RETURN_IF_ERROR(call.budget.TakeSteps(missing, call.line));
  // As Python's center has it, the odd one goes left in an odd width.
  const int64_t left = side == Side::kRight ? 0
                       : side == Side::kLeft
                           ? missing
                           : missing / 2 + (missing & width & 1);
  Text out;
  for (int64_t i = 0; i < left; ++i) out.Append(fill);
  out.Append(text);
  for (int64_t i = left; i < missing; ++i) out.Append(fill);
  return Value(std::move(out));
}

absl::StatusOr<std::vector<Text>> LinesOf(const Text& text, bool keep_ends,
                                          Budget& budget, int line) {
  const absl::string_view bytes = text.bytes();
  std::vector<Text> lines;
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size();) {
    size_t end = at + Utf8Length(bytes, at);
    const char32_t c = DecodeUtf8(bytes.substr(at));
    if (!((c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
          c == 0x2028 || c == 0x2029)) {
      at = end;
      continue;
    }
    if (c == '\r' && bytes.substr(end, 1) == "\n") ++end;
    RETURN_IF_ERROR(
        budget.TakeBytes(end - begin + sizeof(Text) + sizeof(Value), line));
    lines.push_back(text.Slice(begin, keep_ends ? end : at));
    begin = end;
    at = end;
  }
  if (begin < bytes.size()) lines.push_back(text.Slice(begin, bytes.size()));
  return lines;
}

absl::StatusOr<Value> Join(const List& items, const Text& glue,
                           const Invocation& call) {
  Text joined;
  for (size_t i = 0; i < items.items.size(); ++i) {
    ASSIGN_OR_RETURN(const Text item,
                     Printed(items.items[i], call.budget, call.line));
    RETURN_IF_ERROR(call.budget.TakeSteps(1, call.line));
    RETURN_IF_ERROR(
        call.budget.TakeBytes(item.size() + glue.size(), call.line));
    if (i > 0) joined.Append(glue);
    joined.Append(item);
  }
  return Value(std::move(joined));
}

}  // namespace penstock::jinja
