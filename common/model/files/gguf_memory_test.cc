// However a file is shaped, reading it takes memory of a small multiple of its
// size: what a few bytes claim is never allocated for.

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/files/gguf_model.h"
#include "common/model/files/testing/gguf_mutator.h"
#include "common/model/files/testing/tiny_llama.h"
#include "gtest/gtest.h"

namespace {

std::atomic<int64_t> live_bytes{0};
std::atomic<int64_t> peak_bytes{0};

void* CountedNew(size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) std::abort();
  int64_t live = live_bytes += malloc_usable_size(block);
  if (live > peak_bytes) peak_bytes = live;
  return block;
}

void CountedDelete(void* block) {
  if (block == nullptr) return;
  live_bytes -= malloc_usable_size(block);
  std::free(block);
}

}  // namespace

void* operator new(size_t size) { return CountedNew(size); }
void* operator new[](size_t size) { return CountedNew(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return CountedNew(size);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return CountedNew(size);
}
void operator delete(void* block) noexcept { CountedDelete(block); }
void operator delete[](void* block) noexcept { CountedDelete(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept {
  CountedDelete(block);
}
void operator delete[](void* block, const std::nothrow_t&) noexcept {
  CountedDelete(block);
}
void operator delete(void* block, size_t) noexcept { CountedDelete(block); }
void operator delete[](void* block, size_t) noexcept { CountedDelete(block); }

namespace penstock {
namespace {

// Of the file's size; the worst are directories of tiny entries.
constexpr int64_t kMultiple = 8;
constexpr int64_t kFixedBytes = 64 << 10;

// Reads the file and expects no more memory than its size allows.
absl::Status ReadWithinBound(const std::vector<uint8_t>& file) {
  int64_t before = live_bytes;
  peak_bytes = before;
  absl::Status status = ReadGgufModel(file, "bomb.gguf").status();
  EXPECT_LE(peak_bytes - before,
            static_cast<int64_t>(file.size()) * kMultiple + kFixedBytes)
      << "file of " << file.size() << " bytes: " << status;
  return status;
}

GgufDocument Small() {
  return MakeTinyLlama({.layers = 1, .all_bytes = false});
}

TEST(GgufMemoryTest, ValidModel) {
  EXPECT_TRUE(ReadWithinBound(MakeTinyLlama().Encode()).ok());
}

TEST(GgufMemoryTest, ManyTinyKeys) {
  GgufDocument document = Small();
  for (int i = 0; i < 60000; ++i) {
    document.metadata.push_back({absl::StrCat(i), 0, "x"});
  }
  EXPECT_TRUE(ReadWithinBound(document.Encode()).ok());
}

TEST(GgufMemoryTest, ManyTinyTensors) {
  GgufDocument document = Small();
  document.alignment = 8;
  document.Set(Uint32Entry("general.alignment", 8));
  for (int i = 0; i < 60000; ++i) {
    document.tensors.push_back({.name = absl::StrCat(i),
                                .dimensions = {1},
                                .type = 0,
                                .data = "data"});
  }
  EXPECT_FALSE(ReadWithinBound(document.Encode()).ok());
}

TEST(GgufMemoryTest, ManyTinyTokensAndMerges) {
  GgufDocument document = MakeTinyLlama({.layers = 1,
                                         .hidden = 2,
                                         .heads = 1,
                                         .kv_heads = 1,
                                         .ffn = 1,
                                         .embedding_type = TensorType::kF32,
                                         .matrix_types = {TensorType::kF32},
                                         .all_bytes = false});
  constexpr size_t kTokens = 100000;
  std::vector<std::string> tokens =
      StringsOf(*document.FindEntry("tokenizer.ggml.tokens"));
  while (tokens.size() < kTokens) {
    tokens.push_back(absl::StrCat(tokens.size()));
  }
  document.Set(StringsEntry("tokenizer.ggml.tokens", tokens));
  document.Set(Int32sEntry("tokenizer.ggml.token_type",
                           std::vector<int32_t>(kTokens, 1)));
  GgufDocument::Tensor* embedding = document.FindTensor("token_embd.weight");
  embedding->dimensions = {2, kTokens};
  embedding->data.resize(kTokens * 2 * sizeof(float));
  std::vector<std::string> merges;
  // "123 78" makes "12378": all three are tokens, since numbers from 60 are.
  for (size_t i = 10000; i < kTokens; ++i) {
    if (i % 100 >= 60) merges.push_back(absl::StrCat(i / 100, " ", i % 100));
  }
  document.Set(StringsEntry("tokenizer.ggml.merges", merges));
  absl::Status status = ReadWithinBound(document.Encode());
  EXPECT_TRUE(status.ok()) << status;
}

TEST(GgufMemoryTest, EmptyStringsWithoutEnd) {
  GgufDocument document = Small();
  document.Set(
      StringsEntry("tokenizer.ggml.tokens", std::vector<std::string>(200000)));
  EXPECT_FALSE(ReadWithinBound(document.Encode()).ok());
}

TEST(GgufMemoryTest, NumbersThatLie) {
  for (uint64_t lie : {uint64_t{1} << 20, uint64_t{1} << 40, UINT64_MAX}) {
    GgufDocument document = Small();
    document.metadata_count = lie;
    EXPECT_FALSE(ReadWithinBound(document.Encode()).ok());
    document = Small();
    document.tensor_count = lie;
    EXPECT_FALSE(ReadWithinBound(document.Encode()).ok());
    document = Small();
    document.Set({"x", 9, GgufArray(GgufType::kString, lie, "")});
    EXPECT_FALSE(ReadWithinBound(document.Encode()).ok());
    document = Small();
    document.Set({"llama.block_count", 10, GgufNumber(lie)});
    EXPECT_FALSE(ReadWithinBound(document.Encode()).ok());
  }
}

TEST(GgufMemoryTest, MutatedFiles) {
  GgufMutator mutator(11);
  for (int i = 0; i < 2000; ++i) {
    ReadWithinBound(mutator.Next()).IgnoreError();
  }
}

}  // namespace
}  // namespace penstock
