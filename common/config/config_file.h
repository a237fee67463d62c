#pragma once

#include <string>

#include "absl/status/status.h"

namespace google::protobuf {
class Message;
}

namespace penstock {

// Reads a text-format file into `message`. INVALID_ARGUMENT names path, line
// and key; an unknown key comes with its nearest known neighbour. The file's
// `version` must be 1.
absl::Status ReadConfigFile(const std::string& path,
                            google::protobuf::Message& message);

// Same, from memory; `path` is for messages.
absl::Status ParseConfig(const std::string& text, const std::string& path,
                         google::protobuf::Message& message);

}  // namespace penstock
