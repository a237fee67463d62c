#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/text/jinja/text.h"

namespace penstock::jinja {

class Value;

// A name, attribute or item that is not there; `what` says which, for errors.
struct Undefined {
  std::string what;
};
struct None {};

// Lists and dictionaries are data only: no namespace, loop, function or macro
// is ever inside one, so there are no cycles. `depth` bounds recursion over
// them.
struct List {
  // All that Python iterates over and that is no str or dict.
  enum class Kind {
    kList,
    kTuple,
    kGroup,  // a tuple of `grouper` and `list`
    kRange,
    kKeys,  // of a dict, as are the next two
    kValues,
    kItems,
    kGenerator,  // read once, and always true
  };

  std::vector<Value> items;
  Kind kind = Kind::kList;
  int depth = 1;
  // Of a generator: how many items have been read.
  mutable size_t taken = 0;

  // As Python names the type.
  absl::string_view type_name() const;
  bool is_tuple() const { return kind == Kind::kTuple || kind == Kind::kGroup; }
  // Whether Python finds an item of it by number.
  bool has_places() const { return kind <= Kind::kRange; }
};
struct Dict {
  // In order of insertion; keys differ.
  std::vector<std::pair<Text, Value>> items;
  int depth = 1;

  const Value* Find(absl::string_view key) const;
  // Puts the value in the key's place, which a new key finds at the end.
  void Put(const Text& key, Value value);
};
inline constexpr int kMaxDataDepth = 100;

// The one mutable object: what `{% set ns.x = ... %}` writes to.
struct Namespace {
  std::map<std::string, Value> attributes;
};

// `loop` inside a `for`; one for the whole of a run.
struct Loop {
  std::shared_ptr<const List> items;
  int64_t index0 = 0;
  int64_t depth0 = 0;  // of a recursive loop
  // Of a recursive loop: itself and the scope that it stands in; else null.
  const struct For* node = nullptr;
  struct Scope* scope = nullptr;
  // What `changed` was asked last; nothing before.
  std::shared_ptr<const List> asked;
};

// A function of the template's world, called by its name.
struct Function {
  const struct BuiltinFunction* builtin;
};

// A macro, or the body of a `call`, in the scope that it stands in. No value
// outlives its scope: macros are never inside data.
struct Closure {
  const struct Macro* macro;
  struct Scope* scope;
};

// Any value of the language. Cheap to copy: what is large is shared and
// immutable.
class Value {
 public:
  using TextPtr = std::shared_ptr<const Text>;
  using ListPtr = std::shared_ptr<const List>;
  using DictPtr = std::shared_ptr<const Dict>;
  using NamespacePtr = std::shared_ptr<Namespace>;
  using LoopPtr = std::shared_ptr<Loop>;

  Value() : data_(None()) {}
  explicit Value(bool value) : data_(value) {}
  explicit Value(int64_t value) : data_(value) {}
  explicit Value(double value) : data_(value) {}
  explicit Value(Text text)
      : data_(std::make_shared<const Text>(std::move(text))) {}
  explicit Value(List list)
      : data_(std::make_shared<const List>(std::move(list))) {}
  explicit Value(ListPtr list) : data_(std::move(list)) {}
  explicit Value(Dict dict)
      : data_(std::make_shared<const Dict>(std::move(dict))) {}
  explicit Value(Undefined undefined) : data_(std::move(undefined)) {}
  explicit Value(NamespacePtr space) : data_(std::move(space)) {}
  explicit Value(LoopPtr loop) : data_(std::move(loop)) {}
  explicit Value(Function function) : data_(function) {}
  explicit Value(Closure closure) : data_(closure) {}

  // Each: null when the value is of another type.
  const Undefined* undefined() const { return std::get_if<Undefined>(&data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }
  const bool* boolean() const { return std::get_if<bool>(&data_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&data_); }
  const double* real() const { return std::get_if<double>(&data_); }
  const Text* text() const { return Shared<TextPtr>(); }
  const List* list() const { return Shared<ListPtr>(); }
  const Dict* dict() const { return Shared<DictPtr>(); }
  Loop* loop() const { return Shared<LoopPtr>(); }
  const Function* function() const { return std::get_if<Function>(&data_); }
  const Closure* closure() const { return std::get_if<Closure>(&data_); }
  Namespace* space() const {
    const auto* pointer = std::get_if<NamespacePtr>(&data_);
    return pointer == nullptr ? nullptr : pointer->get();
  }
  // The list as it is shared. Precondition: list() is not null.
  const ListPtr& shared_list() const { return std::get<ListPtr>(data_); }

  // A boolean or integer as an integer, as Python counts.
  const int64_t* AsInteger() const;
  // Whether it may stand inside a list, a dictionary or a namespace.
  bool is_data() const {
    return space() == nullptr && loop() == nullptr && function() == nullptr &&
           closure() == nullptr;
  }
  // How deep lists and dictionaries are nested in it; 0 for other data.
  int depth() const;

  bool Truthy() const;
  // The type as Python names it, for messages.
  absl::string_view type_name() const;

 private:
  template <typename Pointer>
  auto Shared() const -> decltype(std::declval<const Pointer&>().get()) {
    const auto* pointer = std::get_if<Pointer>(&data_);
    return pointer == nullptr ? nullptr : pointer->get();
  }

  std::variant<Undefined, None, bool, int64_t, double, TextPtr, ListPtr,
               DictPtr, NamespacePtr, LoopPtr, Function, Closure>
      data_;
};

inline Value TextValue(absl::string_view bytes, bool from_message = false) {
  return Value(Text(bytes, from_message));
}

// A float as Python writes it: the shortest digits that read back the same.
std::string FormatReal(double value);

}  // namespace penstock::jinja
