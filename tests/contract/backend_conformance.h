#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/contract/model_driver.h"
#include "tests/contract/transcript.h"

namespace penstock {

// One backend on one model. The suite is compiled into a test binary together
// with its INSTANTIATE_TEST_SUITE_P.
struct ConformanceParam {
  BackendMaker maker;
  std::string model_name;
  std::function<const ModelFile&()> model;  // opened once, by the first call
  // Longer than two attention splits, so that their merge is part of it.
  std::vector<TokenId> prompt;
  int decode_tokens = 12;

  std::string name() const { return maker.name + "_" + model_name; }
  friend void PrintTo(const ConformanceParam& param, std::ostream* out) {
    *out << param.name();
  }
};

class BackendConformanceTest
    : public ::testing::TestWithParam<ConformanceParam> {
 protected:
  const ModelSpec& spec() const { return GetParam().model().spec(); }
  // Drivers of this param with arenas of their own, kept between tests.
  ModelDriver& driver();
  ModelDriver& other_driver();

  DrivenSequence Sequence() const;
  // Token `n` of any prompt but the param's own.
  std::vector<TokenId> OtherPrompt(int n, int tokens) const;

  // The prompt in chunks of 512, alone, then decoded: what all else must equal.
  const Transcript& Baseline();
  // Prefill and decode, alone, and release.
  Transcript Alone(DrivenSequence sequence, int chunk, int count);
};

}  // namespace penstock
