#include "common/model/text/jinja/splitting.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "common/base/status_macros.h"
#include "common/model/text/jinja/text_functions.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

// Collects the parts of a text and pays for each.
class Splitter {
 public:
  Splitter(const Text& text, int64_t most, const Invocation& call)
      : text_(text), bytes_(text.bytes()), most_(most), call_(call) {}

  // At runs of white space, which also goes from both ends: all but what comes
  // after the last split that is allowed.
  absl::StatusOr<List> AtSpace() {
    size_t at = Stripped(bytes_, Side::kLeft).begin;
    while (at < bytes_.size()) {
      if (full()) {
        RETURN_IF_ERROR(Add(at, bytes_.size()));
        break;
      }
      size_t end = at;
      while (end < bytes_.size() && !IsSpaceAt(end)) {
        end += Utf8Length(bytes_, end);
      }
      RETURN_IF_ERROR(Add(at, end));
      at = end + Stripped(bytes_.substr(end), Side::kLeft).begin;
    }
    return std::move(parts_);
  }

  absl::StatusOr<List> At(absl::string_view separator) {
    size_t begin = 0;
    while (!full()) {
      const size_t at = bytes_.find(separator, begin);
      if (at == absl::string_view::npos) break;
      RETURN_IF_ERROR(Add(begin, at));
      begin = at + separator.size();
    }
    RETURN_IF_ERROR(Add(begin, bytes_.size()));
    return std::move(parts_);
  }

  // The two from the right.
  absl::StatusOr<List> AtSpaceFromRight() {
    size_t end = Stripped(bytes_, Side::kRight).end;
    while (end > 0) {
      if (full()) {
        RETURN_IF_ERROR(Add(0, end));
        break;
      }
      size_t begin = end;
      while (begin > 0) {
        size_t last = begin - 1;
        while ((bytes_[last] & 0xC0) == 0x80) --last;
        if (IsSpaceAt(last)) break;
        begin = last;
      }
      RETURN_IF_ERROR(Add(begin, end));
      end = Stripped(bytes_.substr(0, begin), Side::kRight).end;
    }
    return Reversed();
  }

  absl::StatusOr<List> AtFromRight(absl::string_view separator) {
    size_t end = bytes_.size();
    while (!full()) {
      const size_t at = bytes_.substr(0, end).rfind(separator);
      if (at == absl::string_view::npos) break;
      RETURN_IF_ERROR(Add(at + separator.size(), end));
      end = at;
    }
    RETURN_IF_ERROR(Add(0, end));
    return Reversed();
  }

 private:
  // Whether as many splits are made as may be.
  bool full() const {
    return static_cast<int64_t>(parts_.items.size()) >= most_;
  }

  bool IsSpaceAt(size_t at) const {
    return IsPythonSpace(DecodeUtf8(bytes_.substr(at)));
  }

  absl::Status Add(size_t begin, size_t end) {
    RETURN_IF_ERROR(call_.budget.TakeBytes(
        end - begin + sizeof(Value) + sizeof(Text), call_.line));
    parts_.items.emplace_back(text_.Slice(begin, end));
    return absl::OkStatus();
  }

  List Reversed() {
    std::reverse(parts_.items.begin(), parts_.items.end());
    return std::move(parts_);
  }

  const Text& text_;
  const absl::string_view bytes_;
  const int64_t most_;
  const Invocation& call_;
  List parts_;
};

absl::StatusOr<Value> SplitFrom(Side side, const Text& text,
                                const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"sep", "maxsplit"}, 0));
  ASSIGN_OR_RETURN(const Text separator, TextArgument(call, bound[0], ""));
  ASSIGN_OR_RETURN(int64_t most, IntegerArgument(call, bound[1], -1));
  if (most < 0) most = std::numeric_limits<int64_t>::max();
  const bool at_space = bound[0] == nullptr || bound[0]->is_none();
  if (!at_space && separator.empty()) {
    return call.Fail("needs a separator that is not empty");
  }
  RETURN_IF_ERROR(
      TakeSearch(text.bytes(), separator.bytes(), call.budget, call.line));
  Splitter splitter(text, most, call);
  List parts;
  if (side == Side::kLeft) {
    ASSIGN_OR_RETURN(
        parts, at_space ? splitter.AtSpace() : splitter.At(separator.bytes()));
  } else {
    ASSIGN_OR_RETURN(parts, at_space ? splitter.AtSpaceFromRight()
                                     : splitter.AtFromRight(separator.bytes()));
  }
  return MakeList(std::move(parts), call.budget, call.line);
}

}  // namespace

absl::StatusOr<Value> Split(const Text& text, const Invocation& call) {
  return SplitFrom(Side::kLeft, text, call);
}

absl::StatusOr<Value> RightSplit(const Text& text, const Invocation& call) {
  return SplitFrom(Side::kRight, text, call);
}

}  // namespace penstock::jinja
