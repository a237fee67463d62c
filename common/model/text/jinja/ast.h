#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// The syntax tree of a template: plain data, immutable once parsed. Trees are
// at most kMaxHeight high, so that code may walk and destroy them recursively.
inline constexpr int kMaxHeight = 200;

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Literal {
  Value value;
};
struct Name {
  std::string name;
};
struct ListLiteral {
  std::vector<ExpressionPtr> items;
  bool tuple = false;
};
struct DictLiteral {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> items;
};
// `object.name`
struct Attribute {
  ExpressionPtr object;
  std::string name;
};
// `object[index]`
struct Index {
  ExpressionPtr object;
  ExpressionPtr index;
};
// `object[start:stop:step]`; parts that are not given are null.
struct Slice {
  ExpressionPtr object;
  ExpressionPtr start;
  ExpressionPtr stop;
  ExpressionPtr step;
};
struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr unpacked;        // `*unpacked`, or null
  ExpressionPtr unpacked_named;  // `**unpacked_named`, or null
};
struct Call {
  ExpressionPtr callee;
  CallArguments arguments;
};
// `object | name(arguments)`
struct FilterCall {
  ExpressionPtr object;
  const struct Filter* filter;
  CallArguments arguments;
};
// `object is name(arguments)`; `is not` is a Not around it.
struct TestCall {
  ExpressionPtr object;
  const struct Test* test;
  CallArguments arguments;
};
struct Not {
  ExpressionPtr operand;
};
struct Negate {
  ExpressionPtr operand;
  bool minus;  // else a plus sign
};
enum class BinaryOperator {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloor,
  kModulo,
  kPower
};
struct Binary {
  BinaryOperator op;
  ExpressionPtr left;
  ExpressionPtr right;
};
// Parts joined with `~`.
struct Concatenation {
  std::vector<ExpressionPtr> parts;
};
enum class Comparison {
  kEqual,
  kNotEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kIn,
  kNotIn,
};
// `first op operand op operand ...`, each operand compared with the next.
struct Comparisons {
  ExpressionPtr first;
  std::vector<std::pair<Comparison, ExpressionPtr>> rest;
};
struct Logical {
  bool conjunction;  // `and`, else `or`
  ExpressionPtr left;
  ExpressionPtr right;
};
// `then if condition else otherwise`; otherwise may be null.
struct Conditional {
  ExpressionPtr condition;
  ExpressionPtr then;
  ExpressionPtr otherwise;
};

struct Expression {
  std::variant<Literal, Name, ListLiteral, DictLiteral, Attribute, Index, Slice,
               Call, FilterCall, TestCall, Not, Negate, Binary, Concatenation,
               Comparisons, Logical, Conditional>
      node;
  int line = 0;
  int height = 1;
};

// What `set` and `for` assign to: a name, an attribute of a namespace, or a
// row of targets that takes a value apart.
struct Target {
  int line = 0;
  std::string name;
  std::string attribute;         // with it, `name` is a namespace
  std::vector<Target> unpacked;  // if not empty, the others are not used
};

struct Statement;
using Body = std::vector<Statement>;

struct Data {
  Text text;
};
struct Output {
  ExpressionPtr value;
};
struct If {
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  Body otherwise;
};
struct For {
  Target target;
  ExpressionPtr items;
  ExpressionPtr condition;  // null when none is given
  Body body;
  Body otherwise;
  bool recursive = false;
};
// Filters on what a body writes, in their order.
struct AppliedFilter {
  const struct Filter* filter;
  CallArguments arguments;
  int line;
};
struct Set {
  Target target;
  ExpressionPtr value;  // null: what `body` writes
  Body body;
  std::vector<AppliedFilter> filters;  // of the body's
};
struct Break {};
struct Continue {};
// A macro, or the body of a `call`, which is a macro without a name.
struct Macro {
  struct Parameter {
    std::string name;
    ExpressionPtr otherwise;  // null when there is none
  };
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
  // Whether the body speaks of them, and they are no parameters.
  bool takes_varargs = false;
  bool takes_kwargs = false;
  bool takes_caller = false;
  bool has_caller_parameter = false;
};
struct MacroDefinition {
  std::unique_ptr<Macro> macro;
};
struct CallBlock {
  ExpressionPtr call;  // a Call
  std::unique_ptr<Macro> body;
};
struct FilterBlock {
  std::vector<AppliedFilter> filters;
  Body body;
};
// `with`: its targets are visible in the body only.
struct With {
  std::vector<std::pair<Target, ExpressionPtr>> values;
  Body body;
};
// What the assistant writes; to a rendering, a scope of its own.
struct Generation {
  Body body;
};

struct Statement {
  std::variant<Data, Output, If, For, Set, Break, Continue, MacroDefinition,
               CallBlock, FilterBlock, With, Generation>
      node;
  int line = 0;
};

}  // namespace penstock::jinja
