#include "router/http/server/http_output.h"

#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace penstock {
namespace {

namespace asio = boost::asio;

constexpr size_t kWriteBuffers = 16;

}  // namespace

HttpOutput::HttpOutput(HttpHost* host, asio::ip::tcp::socket* socket,
                       Owner* owner)
    : host_(host), socket_(socket), owner_(owner), timer_(host->io) {}

void HttpOutput::Queue(std::string bytes) {
  if (bytes.empty()) return;
  bytes_ += bytes.size();
  pieces_.push_back(std::move(bytes));
  if (!host_->in_round) return Write();
  if (!std::exchange(flushes_, true)) {
    host_->to_flush.emplace_back(owner_->KeepAlive(), this);
  }
}

void HttpOutput::Flush() {
  flushes_ = false;
  Write();
}

void HttpOutput::Close() {
  closed_ = true;
  timer_.cancel();
}

void HttpOutput::Write() {
  if (writing_ || closed_ || pieces_.empty()) return;
  std::vector<asio::const_buffer> buffers;
  for (const std::string& bytes : pieces_) {
    if (buffers.size() == kWriteBuffers) break;
    buffers.push_back(asio::buffer(bytes));
  }
  buffers.front() += offset_;
  // A reader that keeps up has room: then neither timer nor poll is needed.
  Error error;
  const size_t written = socket_->write_some(buffers, error);
  if (!error) {
    Took(written);
    return pieces_.empty() ? owner_->OnOutputEmpty() : Write();
  }
  writing_ = true;
  SetDeadline();
  socket_->async_write_some(buffers, [this, alive = owner_->KeepAlive()](
                                         const Error& error, size_t bytes) {
    OnWrite(error, bytes);
  });
}

void HttpOutput::OnWrite(const Error& error, size_t bytes) {
  writing_ = false;
  if (closed_) return;
  if (error) return owner_->OnWriteError(error);
  Took(bytes);
  if (!pieces_.empty()) return Write();
  timer_.cancel();
  owner_->OnOutputEmpty();
}

void HttpOutput::Took(size_t bytes) {
  bytes_ -= bytes;
  bytes += offset_;
  while (!pieces_.empty() && bytes >= pieces_.front().size()) {
    bytes -= pieces_.front().size();
    pieces_.pop_front();
  }
  offset_ = bytes;
}

void HttpOutput::SetDeadline() {
  timer_.expires_after(absl::ToChronoMilliseconds(host_->limits.write_timeout));
  // What was written in time cancels it; a late wake-up finds nothing written.
  timer_.async_wait(
      [this, alive = owner_->KeepAlive(), left = bytes_](const Error& error) {
        if (!error && !closed_ && writing_ && bytes_ >= left) {
          owner_->OnClientStuck();
        }
      });
}

}  // namespace penstock
