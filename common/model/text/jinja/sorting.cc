#include "common/model/text/jinja/sorting.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/status_macros.h"
#include "common/model/text/jinja/case_functions.h"
#include "common/model/text/jinja/member.h"
#include "common/model/text/jinja/operators.h"

namespace penstock::jinja {

absl::StatusOr<Value> KeyOf(const Value& item, const Value* attribute,
                            bool case_sensitive, const Invocation& call) {
  Value key = item;
  if (attribute != nullptr) {
    ASSIGN_OR_RETURN(
        key, MemberAt(item, *attribute, nullptr, call.budget, call.line));
  }
  if (case_sensitive || key.text() == nullptr) return key;
  const Text text = *key.text();
  return Lower(text, call);
}

// A merge sort, since an order may turn out not to be one.
absl::StatusOr<std::vector<size_t>> SortedPlaces(const std::vector<Value>& keys,
                                                 bool reverse,
                                                 const Invocation& call) {
  std::vector<size_t> places(keys.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::vector<size_t> merged(keys.size());
  for (size_t width = 1; width < keys.size(); width *= 2) {
    for (size_t begin = 0; begin < keys.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, keys.size());
      const size_t end = std::min(begin + 2 * width, keys.size());
      size_t left = begin;
      size_t right = middle;
      for (size_t out = begin; out < end; ++out) {
        RETURN_IF_ERROR(call.budget.TakeSteps(1, call.line));
        bool take_right = left == middle;
        if (left < middle && right < end) {
          const Value& a = keys[places[left]];
          const Value& b = keys[places[right]];
          ASSIGN_OR_RETURN(take_right,
                           Compare(Comparison::kLess, reverse ? a : b,
                                   reverse ? b : a, call.budget, call.line));
        }
        merged[out] = take_right ? places[right++] : places[left++];
      }
    }
    places.swap(merged);
  }
  return places;
}

}  // namespace penstock::jinja
