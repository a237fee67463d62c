#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/id.h"

namespace penstock {

// Turns one piece of text into tokens: the part of a tokenizer that was
// trained. Immutable; safe from any thread through a Session each.
class TokenModel {
 public:
  // Working memory for one thread and one text; must not outlive the model.
  class Session {
   public:
    virtual ~Session() = default;

    // Appends the tokens of `piece` to `ids`. Preconditions: `piece` is UTF-8,
    // not empty, and shorter than 2^31 characters.
    virtual void Encode(absl::string_view piece, std::vector<TokenId>& ids) = 0;
  };

  virtual ~TokenModel() = default;

  // `text_bytes`: about how much text the session will see.
  virtual std::unique_ptr<Session> NewSession(size_t text_bytes) const = 0;
};

}  // namespace penstock
