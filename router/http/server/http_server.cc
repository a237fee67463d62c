#include "router/http/server/http_server.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "boost/asio/executor_work_guard.hpp"
#include "boost/asio/post.hpp"
#include "router/http/server/http_connection.h"

namespace penstock {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using Error = boost::system::error_code;

constexpr int kMaxTurningAway = 64;
constexpr std::chrono::milliseconds kAcceptPause(100);

class HttpServerImpl : public HttpServer {
 public:
  explicit HttpServerImpl(std::shared_ptr<HttpHost> host)
      : host_(std::move(host)),
        acceptor_(host_->io),
        timer_(host_->io),
        work_(asio::make_work_guard(host_->io)) {}

  ~HttpServerImpl() override { Shutdown(absl::ZeroDuration()); }

  absl::Status Listen(const std::string& address) {
    const size_t colon = address.rfind(':');
    if (colon == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("http address \"", address, "\" must be host:port"));
    }
    absl::string_view host = absl::string_view(address).substr(0, colon);
    absl::ConsumePrefix(&host, "[");
    absl::ConsumeSuffix(&host, "]");
    Error error;
    const auto found = Tcp::resolver(host_->io).resolve(
        std::string(host), address.substr(colon + 1),
        Tcp::resolver::passive | Tcp::resolver::numeric_service, error);
    if (!error && !found.empty()) Bind(found.begin()->endpoint(), &error);
    if (error || found.empty()) {
      return absl::UnavailableError(
          absl::StrCat("http address ", address, " cannot be listened on (",
                       error.message(), "); choose another with --http"));
    }
    address_ = absl::StrCat(address.substr(0, colon), ":",
                            acceptor_.local_endpoint().port());
    return absl::OkStatus();
  }

  void Run() {
    Accept();
    thread_ = std::thread([host = host_.get()] { host->io.run(); });
  }

  const std::string& address() const override { return address_; }

  void Drain() override {
    asio::post(host_->io, [host = host_] { host->draining = true; });
  }

  void Shutdown(absl::Duration grace) override {
    if (!thread_.joinable()) return;
    asio::post(host_->io, [this, grace] { StopAccepting(grace); });
    work_.reset();
    thread_.join();
  }

 private:
  void Bind(const Tcp::endpoint& endpoint, Error* error) {
    acceptor_.open(endpoint.protocol(), *error);
    if (*error) return;
    acceptor_.set_option(Tcp::acceptor::reuse_address(true), *error);
    if (*error) return;
    acceptor_.bind(endpoint, *error);
    if (*error) return;
    acceptor_.listen(asio::socket_base::max_listen_connections, *error);
  }

  void Accept() {
    acceptor_.async_accept([this](const Error& error, Tcp::socket socket) {
      if (host_->stopping || error == asio::error::operation_aborted) return;
      if (error) return PauseAccepting();
      Take(std::move(socket));
      Accept();
    });
  }

  // Out of descriptors, most likely: some will be free again soon.
  void PauseAccepting() {
    timer_.expires_after(kAcceptPause);
    timer_.async_wait([this](const Error& error) {
      if (!error && !host_->stopping) Accept();
    });
  }

  void Take(Tcp::socket socket) {
    const int open = static_cast<int>(host_->connections.size());
    const bool full = open >= host_->limits.max_connections;
    // Even saying no costs: beyond this many the socket just closes.
    if (full && open >= host_->limits.max_connections + kMaxTurningAway) return;
    auto connection =
        std::make_shared<HttpConnection>(host_.get(), std::move(socket));
    host_->connections.insert(connection);
    host_->probe->ConnectionsOpen(open + 1);
    full ? connection->TurnAway() : connection->Start();
  }

  void StopAccepting(absl::Duration grace) {
    Error ignored;
    acceptor_.close(ignored);
    timer_.cancel();
    host_->stopping = true;
    for (const auto& connection : Connections()) connection->CloseWhenIdle();
    if (host_->connections.empty()) return;
    host_->on_empty = [this] { timer_.cancel(); };
    timer_.expires_after(absl::ToChronoMilliseconds(grace));
    timer_.async_wait([this](const Error&) {
      for (const auto& connection : Connections()) {
        connection->Close(absl::CancelledError("the server stops"));
      }
    });
  }

  // A copy: closing takes them out of the set.
  std::vector<std::shared_ptr<HttpConnection>> Connections() const {
    return {host_->connections.begin(), host_->connections.end()};
  }

  const std::shared_ptr<HttpHost> host_;
  Tcp::acceptor acceptor_;
  asio::steady_timer timer_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::string address_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    const Options& options, HttpHandler handler, std::shared_ptr<Inbox> loop,
    HttpProbe* probe) {
  auto host = std::make_shared<HttpHost>();
  host->self = host;
  host->limits = options.limits;
  host->handler = std::move(handler);
  host->loop = std::move(loop);
  host->probe = probe;
  auto server = std::make_unique<HttpServerImpl>(std::move(host));
  if (absl::Status s = server->Listen(options.address); !s.ok()) return s;
  server->Run();
  return server;
}

}  // namespace penstock
