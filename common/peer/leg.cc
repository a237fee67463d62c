#include "common/peer/leg.h"

namespace penstock {

std::vector<TokenId> LegRequest::history() const {
  std::vector<TokenId> tokens = request.prompt;
  if (request.answers() == 1 && !delivered.empty()) {
    for (const DeliveredToken& token : delivered[0]) {
      tokens.push_back(token.token);
    }
  }
  return tokens;
}

}  // namespace penstock
