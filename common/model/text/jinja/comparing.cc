// Equality, order and membership.
#include "common/model/text/jinja/operators.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/invocation.h"

namespace penstock::jinja {
namespace {

absl::StatusOr<bool> EqualLists(const List& left, const List& right,
                                Budget& budget, int line) {
  const bool same_type =
      left.kind == right.kind || (left.is_tuple() && right.is_tuple());
  if (!same_type) return false;
  if (!left.has_places()) {
    return Unknown(line, absl::StrCat("comparing a ", left.type_name()));
  }
  if (left.items.size() != right.items.size()) return false;
  for (size_t i = 0; i < left.items.size(); ++i) {
    ASSIGN_OR_RETURN(const bool equal,
                     Equal(left.items[i], right.items[i], budget, line));
    if (!equal) return false;
  }
  return true;
}

absl::StatusOr<bool> EqualDicts(const Dict& left, const Dict& right,
                                Budget& budget, int line) {
  if (left.items.size() != right.items.size()) return false;
  for (const auto& [key, value] : left.items) {
    RETURN_IF_ERROR(
        budget.TakeSteps(static_cast<int64_t>(right.items.size()), line));
    const Value* other = right.Find(key.bytes());
    if (other == nullptr) return false;
    ASSIGN_OR_RETURN(const bool equal, Equal(value, *other, budget, line));
    if (!equal) return false;
  }
  return true;
}

absl::StatusOr<bool> Contains(const Value& container, const Value& item,
                              Budget& budget, int line) {
  if (const Text* text = container.text()) {
    if (item.text() == nullptr) return Mismatch("in", item, container, line);
    const absl::string_view needle = item.text()->bytes();
    RETURN_IF_ERROR(TakeSearch(text->bytes(), needle, budget, line));
    return text->bytes().find(needle) != absl::string_view::npos;
  }
  if (const Dict* dict = container.dict()) {
    RETURN_IF_ERROR(
        budget.TakeSteps(static_cast<int64_t>(dict->items.size()), line));
    RETURN_IF_ERROR(CheckHashable(item, line));
    return item.text() != nullptr &&
           dict->Find(item.text()->bytes()) != nullptr;
  }
  if (container.undefined() != nullptr) return false;
  const List* list = container.list();
  if (list == nullptr) return Mismatch("in", item, container, line);
  for (size_t i = list->taken; i < list->items.size(); ++i) {
    // A generator is read up to what is found.
    if (list->kind == List::Kind::kGenerator) list->taken = i + 1;
    ASSIGN_OR_RETURN(const bool equal,
                     Equal(item, list->items[i], budget, line));
    if (equal) return true;
  }
  return false;
}

absl::StatusOr<absl::optional<int>> Order(absl::string_view op,
                                          const Value& left, const Value& right,
                                          Budget& budget, int line);

// The first items that differ decide, else the length.
absl::StatusOr<absl::optional<int>> OrderOfLists(absl::string_view op,
                                                 const Value& left,
                                                 const Value& right,
                                                 Budget& budget, int line) {
  const List& a = *left.list();
  const List& b = *right.list();
  const bool lists = a.kind == List::Kind::kList && b.kind == a.kind;
  if (!lists && !(a.is_tuple() && b.is_tuple())) {
    return Mismatch(op, left, right, line);
  }
  const size_t shared = std::min(a.items.size(), b.items.size());
  for (size_t i = 0; i < shared; ++i) {
    ASSIGN_OR_RETURN(const bool equal,
                     Equal(a.items[i], b.items[i], budget, line));
    if (!equal) return Order(op, a.items[i], b.items[i], budget, line);
  }
  if (a.items.size() == b.items.size()) return absl::optional<int>(0);
  return absl::optional<int>(a.items.size() < b.items.size() ? -1 : 1);
}

// Negative, zero or positive as `left` stands to `right`; nullopt for NaN.
absl::StatusOr<absl::optional<int>> Order(absl::string_view op,
                                          const Value& left, const Value& right,
                                          Budget& budget, int line) {
  const auto sign = [](const auto& a, const auto& b) {
    return a < b ? -1 : a > b ? 1 : 0;
  };
  if (left.text() != nullptr && right.text() != nullptr) {
    RETURN_IF_ERROR(budget.TakeBytes(
        std::min(left.text()->size(), right.text()->size()), line));
    return sign(left.text()->bytes(), right.text()->bytes());
  }
  if (left.AsInteger() != nullptr && right.AsInteger() != nullptr) {
    return sign(*left.AsInteger(), *right.AsInteger());
  }
  const absl::optional<double> a = ToReal(left);
  const absl::optional<double> b = ToReal(right);
  if (!a.has_value() || !b.has_value()) {
    if (left.list() != nullptr && right.list() != nullptr) {
      return OrderOfLists(op, left, right, budget, line);
    }
    return Mismatch(op, left, right, line);
  }
  if (std::isnan(*a) || std::isnan(*b)) return absl::optional<int>();
  return sign(*a, *b);
}

}  // namespace

// A boolean or number as a float.
absl::optional<double> ToReal(const Value& value) {
  if (const int64_t* integer = value.AsInteger()) {
    return static_cast<double>(*integer);
  }
  if (const double* real = value.real()) return *real;
  return absl::nullopt;
}

absl::Status Mismatch(absl::string_view op, const Value& left,
                      const Value& right, int line) {
  for (const Value* value : {&left, &right}) {
    if (const Undefined* undefined = value->undefined()) {
      return Failure(line, absl::StrCat(undefined->what, " is undefined"));
    }
  }
  return Failure(line, absl::StrCat("'", op, "' between a ", left.type_name(),
                                    " and a ", right.type_name()));
}

absl::StatusOr<bool> Equal(const Value& left, const Value& right,
                           Budget& budget, int line) {
  RETURN_IF_ERROR(budget.TakeSteps(1, line));
  if (left.undefined() != nullptr || right.undefined() != nullptr) {
    return left.undefined() != nullptr && right.undefined() != nullptr;
  }
  if (left.is_none() || right.is_none()) {
    return left.is_none() && right.is_none();
  }
  if (left.AsInteger() != nullptr && right.AsInteger() != nullptr) {
    return *left.AsInteger() == *right.AsInteger();
  }
  const absl::optional<double> a = ToReal(left);
  const absl::optional<double> b = ToReal(right);
  if (a.has_value() && b.has_value()) return *a == *b;
  if (left.text() != nullptr && right.text() != nullptr) {
    if (left.text()->size() != right.text()->size()) return false;
    RETURN_IF_ERROR(budget.TakeBytes(left.text()->size(), line));
    return left.text()->bytes() == right.text()->bytes();
  }
  if (left.list() != nullptr && right.list() != nullptr) {
    return EqualLists(*left.list(), *right.list(), budget, line);
  }
  if (left.dict() != nullptr && right.dict() != nullptr) {
    return EqualDicts(*left.dict(), *right.dict(), budget, line);
  }
  if (!left.is_data() && !right.is_data()) {
    return Unknown(line, absl::StrCat("comparing a ", left.type_name()));
  }
  return false;
}

absl::StatusOr<bool> Compare(Comparison comparison, const Value& left,
                             const Value& right, Budget& budget, int line) {
  switch (comparison) {
    case Comparison::kEqual:
    case Comparison::kNotEqual: {
      ASSIGN_OR_RETURN(const bool equal, Equal(left, right, budget, line));
      return equal == (comparison == Comparison::kEqual);
    }
    case Comparison::kIn:
    case Comparison::kNotIn: {
      ASSIGN_OR_RETURN(const bool inside, Contains(right, left, budget, line));
      return inside == (comparison == Comparison::kIn);
    }
    default:
      break;
  }
  static constexpr absl::string_view kOrders[] = {"<", "<=", ">", ">="};
  const int index =
      static_cast<int>(comparison) - static_cast<int>(Comparison::kLess);
  ASSIGN_OR_RETURN(const absl::optional<int> order,
                   Order(kOrders[index], left, right, budget, line));
  if (!order.has_value()) return false;
  switch (comparison) {
    case Comparison::kLess:
      return *order < 0;
    case Comparison::kLessOrEqual:
      return *order <= 0;
    case Comparison::kGreater:
      return *order > 0;
    default:
      return *order >= 0;
  }
}

}  // namespace penstock::jinja
