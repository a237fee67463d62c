#pragma once

#include <string>

#include "common/model/files/model_file.h"
#include "tests/contract/case_accuracy.h"
#include "tests/contract/model_driver.h"

namespace penstock {

// How well a backend does on the texts and greedy generations of
// tests/data/cases, whose tokens are the float oracle's; so the file must have
// the real model's vocabulary, and agreement means most for the file that they
// were made with.
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
Accuracy MeasureAccuracy(const BackendMaker& maker, const ModelFile& model);

// Perplexity of the texts by the oracle.
double OraclePerplexity();

}  // namespace penstock
