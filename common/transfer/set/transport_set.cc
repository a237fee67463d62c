#include "common/transfer/set/transport_set.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/transfer/inproc/inproc_transport.h"
#include "common/transfer/shm/shm_transport.h"
#include "common/transfer/tcp/tcp_transport.h"

namespace penstock {

absl::StatusOr<std::vector<std::unique_ptr<KvTransport>>> MakeTransports(
    const TransportSetOptions& options) {
  std::vector<std::unique_ptr<KvTransport>> transports;
  for (TransportKind kind : options.kinds) {
    switch (kind) {
      case TransportKind::kInproc: {
        ASSIGN_OR_RETURN(auto made,
                         InprocTransport::Create({options.worker, nullptr}));
        transports.push_back(std::move(made));
        break;
      }
      case TransportKind::kShm: {
        ShmTransport::Options shm;
        shm.worker = options.worker;
        ASSIGN_OR_RETURN(auto made, ShmTransport::Create(shm));
        transports.push_back(std::move(made));
        break;
      }
      case TransportKind::kTcp: {
        TcpTransport::Options tcp;
        tcp.worker = options.worker;
        tcp.listen = options.data_listen;
        tcp.advertised_host = options.data_advertised_host;
        ASSIGN_OR_RETURN(auto made, TcpTransport::Create(tcp));
        transports.push_back(std::move(made));
        break;
      }
    }
  }
  return transports;
}

}  // namespace penstock
