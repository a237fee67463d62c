// Indexing and slicing.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/operators.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

// Byte offsets of the characters of a text, and its size.
std::vector<size_t> CharacterOffsets(absl::string_view text) {
  std::vector<size_t> offsets;
  for (size_t at = 0; at < text.size(); at += Utf8Length(text, at)) {
    offsets.push_back(at);
  }
  offsets.push_back(text.size());
  return offsets;
}

// Pays for the offsets of a text's characters.
absl::Status TakeOffsets(const Text& text, Budget& budget, int line) {
  return budget.TakeBytes(text.size() * sizeof(size_t), line);
}

Value Missing(const Value& index) {
  if (const Text* key = index.text()) {
    return Value(Undefined{absl::StrCat("'", key->bytes().substr(0, 64), "'")});
  }
  if (const int64_t* at = index.AsInteger()) {
    return Value(Undefined{absl::StrCat("item ", *at)});
  }
  return Value(Undefined{absl::StrCat("item of a ", index.type_name())});
}

// The item that Python's index names, counted from the end when negative;
// false when there is none.
bool Locate(int64_t index, size_t size, size_t& at) {
  const auto count = static_cast<int64_t>(size);
  if (index < -count || index >= count) return false;
  at = static_cast<size_t>(index < 0 ? index + count : index);
  return true;
}

absl::StatusOr<int64_t> Bound(const Value* bound, int64_t otherwise, int line) {
  if (bound == nullptr || bound->is_none()) return otherwise;
  if (const int64_t* integer = bound->AsInteger()) return *integer;
  return Failure(line, absl::StrCat("a slice bound is a ", bound->type_name()));
}

// The places that a slice of `size` items takes, in order.
absl::StatusOr<std::vector<size_t>> SlicePlaces(const SliceBounds& bounds,
                                                size_t size, int line) {
  const auto count = static_cast<int64_t>(size);
  ASSIGN_OR_RETURN(const int64_t step, Bound(bounds.step, 1, line));
  if (step == 0) return Failure(line, "a slice step is zero");
  // Python clips to [0, count] going up and to [-1, count - 1] going down.
  const int64_t low = step > 0 ? 0 : -1;
  const int64_t high = step > 0 ? count : count - 1;
  const auto clip = [&](int64_t bound) {
    if (bound < 0) bound = bound < -count ? low : bound + count;
    return std::clamp(bound, low, high);
  };
  int64_t start = step > 0 ? low : high;
  int64_t stop = step > 0 ? high : low;
  if (bounds.start != nullptr && !bounds.start->is_none()) {
    ASSIGN_OR_RETURN(start, Bound(bounds.start, 0, line));
    start = clip(start);
  }
  if (bounds.stop != nullptr && !bounds.stop->is_none()) {
    ASSIGN_OR_RETURN(stop, Bound(bounds.stop, 0, line));
    stop = clip(stop);
  }
  std::vector<size_t> places;
  int64_t at = start;
  while (step > 0 ? at < stop : at > stop) {
    places.push_back(static_cast<size_t>(at));
    // Past the end is past the end, however far.
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return places;
}

}  // namespace

absl::StatusOr<Value> Subscript(const Value& object, const Value& index,
                                Budget& budget, int line) {
  if (const Undefined* undefined = object.undefined()) {
    return Failure(line, absl::StrCat(undefined->what, " is undefined"));
  }
  if (const Dict* dict = object.dict()) {
    RETURN_IF_ERROR(
        budget.TakeSteps(static_cast<int64_t>(dict->items.size()), line));
    const Value* item =
        index.text() == nullptr ? nullptr : dict->Find(index.text()->bytes());
    return item == nullptr ? Missing(index) : *item;
  }
  const int64_t* number = index.AsInteger();
  size_t at = 0;
  if (const List* list = object.list()) {
    if (number == nullptr || !list->has_places() ||
        !Locate(*number, list->items.size(), at)) {
      return Missing(index);
    }
    return list->items[at];
  }
  if (const Text* text = object.text()) {
    if (number == nullptr) return Missing(index);
    RETURN_IF_ERROR(TakeOffsets(*text, budget, line));
    const std::vector<size_t> offsets = CharacterOffsets(text->bytes());
    if (!Locate(*number, offsets.size() - 1, at)) return Missing(index);
    return Value(text->Slice(offsets[at], offsets[at + 1]));
  }
  return Missing(index);
}

absl::StatusOr<Value> Sliced(const Value& object, const SliceBounds& bounds,
                             Budget& budget, int line) {
  if (const List* list = object.list(); list != nullptr && list->has_places()) {
    RETURN_IF_ERROR(budget.TakeBytes(
        list->items.size() * (sizeof(Value) + sizeof(size_t)), line));
    ASSIGN_OR_RETURN(const std::vector<size_t> places,
                     SlicePlaces(bounds, list->items.size(), line));
    List slice;
    slice.kind = list->is_tuple() ? List::Kind::kTuple : list->kind;
    slice.depth = list->depth;
    for (const size_t place : places) slice.items.push_back(list->items[place]);
    return Value(std::move(slice));
  }
  if (const Text* text = object.text()) {
    RETURN_IF_ERROR(TakeOffsets(*text, budget, line));
    RETURN_IF_ERROR(TakeOffsets(*text, budget, line));
    const std::vector<size_t> offsets = CharacterOffsets(text->bytes());
    ASSIGN_OR_RETURN(const std::vector<size_t> places,
                     SlicePlaces(bounds, offsets.size() - 1, line));
    Text slice;
    for (const size_t place : places) {
      slice.Append(*text, offsets[place], offsets[place + 1]);
    }
    return Value(std::move(slice));
  }
  if (const Undefined* undefined = object.undefined()) {
    return Failure(line, absl::StrCat(undefined->what, " is undefined"));
  }
  return Failure(line, absl::StrCat("a slice of a ", object.type_name()));
}

}  // namespace penstock::jinja
