#include "common/model/text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdint>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/model/text/regex_translator.h"

namespace penstock {
namespace {

constexpr size_t kMaxPatternBytes = 4096;
constexpr uint32_t kMatchLimit = 50'000'000;
constexpr uint32_t kHeapLimitKib = 64 * 1024;
constexpr size_t kJitStackStart = 32 * 1024;
constexpr size_t kJitStackMax = 4 * 1024 * 1024;

std::string ErrorText(int code) {
  PCRE2_UCHAR buffer[256];
  if (pcre2_get_error_message(code, buffer, sizeof(buffer)) < 0) {
    return absl::StrCat("error ", code);
  }
  return reinterpret_cast<const char*>(buffer);
}

struct FreeMatchData {
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
};
struct FreeContext {
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
};
struct FreeJitStack {
  void operator()(pcre2_jit_stack* p) const { pcre2_jit_stack_free(p); }
};

}  // namespace

struct Regex::Code {
  explicit Code(pcre2_code* compiled) : compiled(compiled) {}
  ~Code() { pcre2_code_free(compiled); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  pcre2_code* compiled;
};

struct Regex::Matcher::State {
  const pcre2_code* code;
  std::unique_ptr<pcre2_match_data, FreeMatchData> data;
  std::unique_ptr<pcre2_match_context, FreeContext> context;
  std::unique_ptr<pcre2_jit_stack, FreeJitStack> jit_stack;
};

Regex::Regex(std::unique_ptr<Code> code) : code_(std::move(code)) {}
Regex::~Regex() = default;

absl::StatusOr<std::unique_ptr<Regex>> Regex::Compile(
    absl::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a pattern of ", pattern.size(), " bytes, more than ",
                     kMaxPatternBytes));
  }
  ASSIGN_OR_RETURN(const std::string translated,
                   RegexTranslator(pattern).Translate());
  int error = 0;
  PCRE2_SIZE offset = 0;
  // Lines end at a line feed only, and ^ and $ are about lines.
  pcre2_code* compiled = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error,
      &offset, nullptr);
  if (compiled == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("pattern ", pattern, ": ", ErrorText(error)));
  }
  // Where the system forbids generated code the interpreter does the work.
  pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
  return absl::WrapUnique(new Regex(std::make_unique<Code>(compiled)));
}

Regex::Matcher::Matcher(const Regex& regex) : state_(new State) {
  state_->code = regex.code_->compiled;
  state_->data.reset(pcre2_match_data_create(1, nullptr));
  state_->context.reset(pcre2_match_context_create(nullptr));
  CHECK(state_->data != nullptr && state_->context != nullptr)
      << "out of memory";
  pcre2_set_match_limit(state_->context.get(), kMatchLimit);
  pcre2_set_heap_limit(state_->context.get(), kHeapLimitKib);
  state_->jit_stack.reset(
      pcre2_jit_stack_create(kJitStackStart, kJitStackMax, nullptr));
  if (state_->jit_stack != nullptr) {
    pcre2_jit_stack_assign(state_->context.get(), nullptr,
                           state_->jit_stack.get());
  }
}

Regex::Matcher::~Matcher() = default;

absl::StatusOr<absl::optional<Regex::Match>> Regex::Matcher::Find(
    absl::string_view text, size_t from) {
  const int found = pcre2_match(
      state_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
      from, PCRE2_NO_UTF_CHECK, state_->data.get(), state_->context.get());
  if (found == PCRE2_ERROR_NOMATCH) return absl::optional<Match>();
  if (found < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("splitting text of ", text.size(),
                     " bytes into words: ", ErrorText(found)));
  }
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(state_->data.get());
  // \K can move the beginning anywhere.
  if (range[0] < from || range[1] < range[0]) {
    return absl::InvalidArgumentError("a pattern matched backwards");
  }
  return absl::optional<Match>(Match{range[0], range[1]});
}

}  // namespace penstock
