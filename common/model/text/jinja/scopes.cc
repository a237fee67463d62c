#include "common/model/text/jinja/scopes.h"

namespace penstock::jinja {

const Value* Scopes::Find(const std::string& name) const {
  for (const Scope* scope = current_; scope != nullptr; scope = scope->parent) {
    const auto found = scope->variables.find(name);
    if (found != scope->variables.end()) return &found->second;
  }
  return nullptr;
}

}  // namespace penstock::jinja
