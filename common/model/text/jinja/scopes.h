#pragma once

#include <map>
#include <string>
#include <utility>

#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

using Variables = std::map<std::string, Value>;

// Variables of one block, and the block around it.
struct Scope {
  Variables variables;
  Scope* parent = nullptr;
};

// The variables that are visible at one point of a rendering.
class Scopes {
 public:
  using Variables = jinja::Variables;

  explicit Scopes(Variables globals) : globals_{std::move(globals)} {}
  Scopes(const Scopes&) = delete;
  Scopes& operator=(const Scopes&) = delete;

  // Null when there is none.
  const Value* Find(const std::string& name) const;
  void Set(const std::string& name, Value value) {
    current_->variables[name] = std::move(value);
  }
  Scope* current() { return current_; }

  // A scope for as long as this lives, within another one.
  class Block {
   public:
    Block(Scopes& scopes, Scope* parent)
        : scopes_(scopes), before_(scopes.current_), scope_{{}, parent} {
      scopes_.current_ = &scope_;
    }
    explicit Block(Scopes& scopes) : Block(scopes, scopes.current_) {}
    ~Block() { scopes_.current_ = before_; }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

   private:
    Scopes& scopes_;
    Scope* before_;
    Scope scope_;
  };

 private:
  Scope globals_;
  Scope* current_ = &globals_;
};

}  // namespace penstock::jinja
