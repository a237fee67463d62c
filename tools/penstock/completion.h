#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "protos/inference.pb.h"

namespace penstock {

// What one Generate call has brought so far: adds up frames, and checks that
// none is missing or doubled. A value type.
class Completion {
 public:
  // Text that may be shown now. DATA_LOSS when a frame does not follow the
  // ones before it; INTERNAL when frames come after the last.
  absl::StatusOr<std::string> Add(const v1::GenerateResponse& response);

  // INTERNAL when the stream ended before every sample was finished.
  absl::Status CheckFinished() const;

  int tokens() const;
  int answers() const { return static_cast<int>(choices_.size()); }
  const std::string& text(int sample = 0) const {
    return choices_.at(sample).text;
  }

  // One line for people: how many tokens, where they were made, how fast.
  std::string Describe() const;

  // The document of `penstock generate --json`.
  nlohmann::json ToJson() const;

 private:
  absl::Status AddPrompt(const v1::PromptLogprobs& prompt);

  struct Choice {
    std::string text;
    std::vector<v1::FrameToken> tokens;
    v1::FinishReason finish = v1::FINISH_REASON_NONE;
  };
  std::vector<Choice> choices_ = std::vector<Choice>(1);
  // Of the prompt's tokens from the second on.
  std::vector<v1::TokenLogprobs> prompt_logprobs_;
  std::string request_id_;
  v1::Placement placement_;
  v1::Usage usage_;
  v1::Timings timings_;
  v1::TransferSummary transfer_;
};

// One line of `penstock generate --stream-json`.
nlohmann::json FrameToJson(const v1::GenerateResponse& response);

}  // namespace penstock
