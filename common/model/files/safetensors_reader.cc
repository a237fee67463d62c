#include "common/model/files/safetensors_reader.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/model/files/gguf_cursor.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

// The largest known header has a few MiB.
constexpr uint64_t kMaxHeaderBytes = 64 << 20;
constexpr size_t kMaxTensors = 1 << 18;
constexpr size_t kMaxNameBytes = 256;
constexpr size_t kMaxDimensions = 4;
constexpr absl::string_view kMetadataName = "__metadata__";

// A tensor as the header describes it.
struct Entry {
  std::string name;
  std::optional<std::string> dtype = std::nullopt;
  std::optional<std::vector<uint64_t>> shape = std::nullopt;
  std::optional<std::vector<uint64_t>> offsets = std::nullopt;
};

// Takes the header's events; stops at the first that the format does not have,
// so that a hostile header costs no more memory than an honest one.
class HeaderHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderHandler(const ModelErrorMaker& errors) : errors_(errors) {}

  // After the parse; an error also when the handler stopped it.
  absl::Status status() const { return status_; }
  std::vector<Entry> TakeEntries() { return std::move(entries_); }

  bool start_object(size_t) override {
    if (depth_ == 2) return Unexpected("an object");
    ++depth_;
    return true;
  }

  bool end_object() override {
    --depth_;
    return true;
  }

  bool key(string_t& key) override {
    if (depth_ == 2) {
      field_ = key;
      return true;
    }
    in_metadata_ = key == kMetadataName;
    if (in_metadata_) return true;
    if (key.empty() || key.size() > kMaxNameBytes) {
      return Fail(ModelError::kTensorName, "tensor name", QuoteForError(key),
                  absl::StrCat("1 to ", kMaxNameBytes, " bytes"));
    }
    if (entries_.size() == kMaxTensors) {
      return Fail(ModelError::kTensorCount, "tensors", "more",
                  absl::StrCat("at most ", kMaxTensors));
    }
    entries_.push_back({.name = key});
    return true;
  }

  bool string(string_t& text) override {
    if (in_metadata_ && depth_ == 2) return true;
    if (!in_metadata_ && depth_ == 2 && numbers_ == nullptr &&
        field_ == "dtype" && !entries_.back().dtype) {
      entries_.back().dtype = text;
      return true;
    }
    return Unexpected("a string");
  }

  bool start_array(size_t) override {
    if (depth_ != 2 || in_metadata_ || numbers_ != nullptr) {
      return Unexpected("an array");
    }
    Entry& entry = entries_.back();
    auto& target = field_ == "shape" ? entry.shape : entry.offsets;
    if ((field_ != "shape" && field_ != "data_offsets") || target) {
      return Unexpected("an array");
    }
    numbers_ = &target.emplace();
    return true;
  }

  bool end_array() override {
    numbers_ = nullptr;
    return true;
  }

  bool number_unsigned(number_unsigned_t number) override {
    if (numbers_ == nullptr || numbers_->size() > kMaxDimensions) {
      return Unexpected("a number");
    }
    numbers_->push_back(number);
    return true;
  }

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a truth value"); }
  bool number_integer(number_integer_t) override {
    return Unexpected("a negative number");
  }
  bool number_float(number_float_t, const string_t&) override {
    return Unexpected("a fraction");
  }
  bool binary(binary_t&) override { return Unexpected("bytes"); }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail(ModelError::kJson, "header",
                absl::StrCat("an error at byte ", position),
                "a JSON object in UTF-8");
  }

 private:
  bool Fail(ModelError error, std::string field, std::string found,
            std::string expected) {
    status_ = errors_.Make(error, {.field = std::move(field),
                                   .found = std::move(found),
                                   .expected = std::move(expected)});
    return false;
  }
  bool Unexpected(absl::string_view what) {
    std::string field = "header";
    if (in_metadata_) field = std::string(kMetadataName);
    if (!in_metadata_ && !entries_.empty()) {
      field = absl::StrCat("tensor ", QuoteForError(entries_.back().name));
    }
    return Fail(ModelError::kTensorFields, field,
                absl::StrCat(what, " at ", QuoteForError(field_)),
                "\"dtype\", \"shape\" and \"data_offsets\", each once");
  }

  const ModelErrorMaker& errors_;
  absl::Status status_;
  std::vector<Entry> entries_;
  int depth_ = 0;  // of objects around
  bool in_metadata_ = false;
  std::string field_;                         // last key inside a tensor
  std::vector<uint64_t>* numbers_ = nullptr;  // the array being read
};

// Types that other programs write and no forward pass here reads are unknown.
std::optional<TensorType> TypeOf(absl::string_view dtype) {
  if (dtype == "F32") return TensorType::kF32;
  if (dtype == "F16") return TensorType::kF16;
  if (dtype == "BF16") return TensorType::kBF16;
  return std::nullopt;
}

class DirectoryBuilder {
 public:
  DirectoryBuilder(absl::Span<const uint8_t> data,
                   const ModelErrorMaker& errors)
      : data_(data), errors_(errors) {}

  absl::StatusOr<TensorMap> Build(std::vector<Entry> entries) {
    TensorMap tensors;
    for (Entry& entry : entries) {
      field_ = absl::StrCat("tensor ", QuoteForError(entry.name));
      ASSIGN_OR_RETURN(TensorView view, View(entry));
      if (!tensors.emplace(entry.name, std::move(view)).second) {
        return Wrong(ModelError::kDuplicateTensor, "", "the name again",
                     "each name once");
      }
    }
    RETURN_IF_ERROR(CheckCover(tensors));
    return tensors;
  }

 private:
  absl::Status Wrong(ModelError error, absl::string_view part,
                     std::string found, std::string expected) const {
    return errors_.Make(error, {.field = absl::StrCat(field_, part),
                                .found = std::move(found),
                                .expected = std::move(expected)});
  }

  absl::StatusOr<TensorView> View(const Entry& entry) const {
    if (!entry.dtype || !entry.shape || !entry.offsets ||
        entry.offsets->size() != 2) {
      return Wrong(ModelError::kTensorFields, "", "a field missing",
                   "\"dtype\", \"shape\" and two \"data_offsets\"");
    }
    TensorView view;
    view.name = entry.name;
    const std::optional<TensorType> type = TypeOf(*entry.dtype);
    if (!type) {
      return Wrong(ModelError::kTensorType, " dtype",
                   QuoteForError(*entry.dtype), "one of F32, F16, BF16");
    }
    view.type = *type;
    ASSIGN_OR_RETURN(uint64_t bytes, ByteSize(entry, view));
    const uint64_t begin = (*entry.offsets)[0], end = (*entry.offsets)[1];
    if (begin > end || end > data_.size()) {
      return Wrong(ModelError::kTensorOutOfFile, " data_offsets",
                   absl::StrCat("[", begin, ", ", end, "]"),
                   absl::StrCat("within the ", data_.size(),
                                " data bytes of the file (is it cut short?)"));
    }
    if (end - begin != bytes) {
      return Wrong(ModelError::kTensorBytes, " data_offsets",
                   absl::StrCat(end - begin, " bytes"),
                   absl::StrCat(bytes, " for its shape and dtype"));
    }
    view.data = data_.subspan(begin, bytes);
    return view;
  }

  // Sets the view's shape.
  absl::StatusOr<uint64_t> ByteSize(const Entry& entry,
                                    TensorView& view) const {
    if (entry.shape->empty() || entry.shape->size() > kMaxDimensions) {
      return Wrong(ModelError::kDimensionCount, " shape",
                   absl::StrCat(entry.shape->size(), " dimensions"),
                   absl::StrCat("1 to ", kMaxDimensions));
    }
    int64_t bytes = Traits(view.type).block_bytes;
    bool overflow = false;
    for (uint64_t extent : *entry.shape) {
      if (extent == 0) {
        return Wrong(ModelError::kZeroDimension, " shape", "0", "1 or more");
      }
      overflow |= __builtin_mul_overflow(bytes, extent, &bytes);
      view.shape.push_back(static_cast<int64_t>(extent));
    }
    if (overflow) {
      return Wrong(ModelError::kShapeOverflow, " shape",
                   absl::StrJoin(*entry.shape, " x "),
                   "a byte size under 2^63");
    }
    return static_cast<uint64_t>(bytes);
  }

  // From first to last byte, each in exactly one tensor.
  absl::Status CheckCover(const TensorMap& tensors) const {
    std::vector<const TensorView*> order;
    for (const auto& [name, view] : tensors) order.push_back(&view);
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return a->data.data() < b->data.data();
    });
    const uint8_t* next = data_.data();
    for (const TensorView* view : order) {
      if (view->data.data() != next) {
        return errors_.Make(
            view->data.data() < next ? ModelError::kTensorOverlap
                                     : ModelError::kTensorGap,
            {.field = absl::StrCat("tensor ", QuoteForError(view->name),
                                   " data_offsets"),
             .found = absl::StrCat("begin ", view->data.data() - data_.data()),
             .expected = absl::StrCat(next - data_.data(),
                                      ", where the tensor before ends")});
      }
      next = view->data.data() + view->data.size();
    }
    if (next != data_.data() + data_.size()) {
      return errors_.Make(
          ModelError::kTensorGap,
          {.field = "end of the file",
           .found = absl::StrCat(data_.data() + data_.size() - next,
                                 " bytes after the last tensor"),
           .expected = "none"});
    }
    return absl::OkStatus();
  }

  const absl::Span<const uint8_t> data_;
  const ModelErrorMaker& errors_;
  std::string field_;
};

}  // namespace

absl::StatusOr<TensorMap> ReadSafetensors(absl::Span<const uint8_t> file,
                                          const std::string& path) {
  const ModelErrorMaker errors(path);
  GgufCursor cursor(file, errors);
  ASSIGN_OR_RETURN(uint64_t length, cursor.Number<uint64_t>("header length"));
  const uint64_t most = std::min(kMaxHeaderBytes, cursor.remaining());
  if (length > most) {
    return errors.Make(
        ModelError::kHeaderLength,
        {.field = "header length",
         .found = absl::StrCat(length),
         .expected = absl::StrCat("at most ", most, " (is it safetensors?)")});
  }
  ASSIGN_OR_RETURN(absl::Span<const uint8_t> header,
                   cursor.Bytes(length, "header"));
  HeaderHandler handler(errors);
  nlohmann::json::sax_parse(header.begin(), header.end(), &handler);
  RETURN_IF_ERROR(handler.status());
  return DirectoryBuilder(file.subspan(cursor.offset()), errors)
      .Build(handler.TakeEntries());
}

}  // namespace penstock
