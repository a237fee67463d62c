#include "tools/penstock/chat_settings.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cstdint>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/model/generate_request.h"
#include "common/rpc/inference_wire.h"

namespace penstock {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Whether a person may set the field: it holds one value and changes the text.
bool IsSetting(const FieldDescriptor& field) {
  return !field.is_repeated() && field.name() != "logprobs" &&
         field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE;
}

absl::Status NoValue(const FieldDescriptor& field, absl::string_view value,
                     absl::string_view kind) {
  return absl::InvalidArgumentError(
      absl::StrCat(field.name(), " is ", kind, ", not '", value, "'"));
}

absl::Status SetField(const FieldDescriptor& field, absl::string_view value,
                      Message& message) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_FLOAT: {
      float number = 0;
      if (!absl::SimpleAtof(value, &number)) {
        return NoValue(field, value, "a number");
      }
      reflection.SetFloat(&message, &field, number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_INT32: {
      int32_t number = 0;
      if (!absl::SimpleAtoi(value, &number)) {
        return NoValue(field, value, "a whole number");
      }
      reflection.SetInt32(&message, &field, number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      uint64_t number = 0;
      if (!absl::SimpleAtoi(value, &number)) {
        return NoValue(field, value, "a whole number of 0 or more");
      }
      reflection.SetUInt64(&message, &field, number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      bool on = false;
      if (!absl::SimpleAtob(value, &on)) {
        return NoValue(field, value, "true or false");
      }
      reflection.SetBool(&message, &field, on);
      return absl::OkStatus();
    }
    default:
      return NoValue(field, value, "not to be set here");
  }
}

std::string ValueOf(const FieldDescriptor& field, const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  if (!reflection.HasField(message, &field)) return "default";
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_FLOAT:
      return absl::StrCat(reflection.GetFloat(message, &field));
    case FieldDescriptor::CPPTYPE_INT32:
      return absl::StrCat(reflection.GetInt32(message, &field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(reflection.GetUInt64(message, &field));
    default:
      return reflection.GetBool(message, &field) ? "true" : "false";
  }
}

// Asks what the router would ask: ranges are the request's own.
absl::Status Check(v1::GenerateRequest request) {
  request.mutable_ids()->add_ids(0);
  ASSIGN_OR_RETURN(ClientRequest client,
                   DecodeGenerateRequest(request.SerializeAsString()));
  client.request.prompt = {0};
  RequestLimits limits;
  // The model's own are the router's to know.
  limits.context_length = std::numeric_limits<int>::max();
  limits.max_prompt_tokens = limits.context_length - 1;
  limits.vocab_size = limits.context_length;
  return Validate(client.request, limits);
}

}  // namespace

std::vector<std::string> ChatSettings::Names() {
  std::vector<std::string> names;
  for (const Descriptor* descriptor :
       {v1::Sampling::descriptor(), v1::Stop::descriptor()}) {
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const FieldDescriptor& field = *descriptor->field(i);
      if (IsSetting(field)) names.push_back(field.name());
    }
  }
  return names;
}

absl::Status ChatSettings::Set(absl::string_view name,
                               absl::string_view value) {
  v1::GenerateRequest changed = request_;
  for (Message* message : {static_cast<Message*>(changed.mutable_sampling()),
                           static_cast<Message*>(changed.mutable_stop())}) {
    const FieldDescriptor* field =
        message->GetDescriptor()->FindFieldByName(std::string(name));
    if (field == nullptr || !IsSetting(*field)) continue;
    if (value == "default") {
      message->GetReflection()->ClearField(message, field);
    } else {
      RETURN_IF_ERROR(SetField(*field, value, *message));
    }
    RETURN_IF_ERROR(Check(changed));
    request_ = std::move(changed);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no setting '", name,
                                                 "'; there are system, ",
                                                 absl::StrJoin(Names(), ", ")));
}

std::string ChatSettings::Describe() const {
  std::string text;
  for (const Message* message :
       {static_cast<const Message*>(&request_.sampling()),
        static_cast<const Message*>(&request_.stop())}) {
    const Descriptor& descriptor = *message->GetDescriptor();
    for (int i = 0; i < descriptor.field_count(); ++i) {
      const FieldDescriptor& field = *descriptor.field(i);
      if (!IsSetting(field)) continue;
      absl::StrAppend(&text, field.name(), " = ", ValueOf(field, *message),
                      "\n");
    }
  }
  return text;
}

}  // namespace penstock
