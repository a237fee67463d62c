#pragma once

#include <string>

#include "common/model/files/model_file.h"
#include "tests/contract/case_accuracy.h"
#include "tests/contract/model_driver.h"

namespace penstock {

// tests/data/cases: the float oracle's answers over the real model's file.
std::string RealCases();

// How well a backend does on the texts and greedy generations of `cases`, a
// folder in the form of tests/data/cases with the float oracle's answers over
// the same file.
struct Accuracy {
  double perplexity = 0;
  AccuracySummary summary;  // of the generations' steps
  int prompts = 0;
  int equal = 0;  // prompts whose greedy answer is the oracle's
  double block_bytes = 0;
  KvType kv_type = KvType::kF16;
  double cpu_seconds = 0;

  // "1158 of 1175 | 18 of 26 | 0.114": steps, answers, top-5 error.
  std::string Columns() const;
};
Accuracy MeasureAccuracy(const BackendMaker& maker, const ModelFile& model,
                         const std::string& cases);

// Perplexity of the texts by the oracle.
double OraclePerplexity(const std::string& cases);

}  // namespace penstock
