#pragma once

#include "common/rpc/server.h"
#include "grpcpp/impl/codegen/service_type.h"

namespace penstock {

// What every RpcService is underneath.
class GrpcService : public RpcService {
 public:
  virtual grpc::Service* service() = 0;
};

}  // namespace penstock
