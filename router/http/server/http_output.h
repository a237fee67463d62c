#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/steady_timer.hpp"
#include "router/http/server/http_host.h"

namespace penstock {

// What one connection has yet to write, in order, and its writing. What is
// queued in one round of the host's tasks leaves in one write. Lives on the
// server's thread, as a member of its owner.
class HttpOutput {
 public:
  using Error = boost::system::error_code;

  class Owner {
   public:
    // Nothing waits any more. May be called from inside Queue.
    virtual void OnOutputEmpty() = 0;
    virtual void OnWriteError(const Error& error) = 0;
    // For HttpLimits::write_timeout the client has taken nothing.
    virtual void OnClientStuck() = 0;
    // Holds the owner, and so this, while an operation is under way.
    virtual std::shared_ptr<void> KeepAlive() = 0;

   protected:
    ~Owner() = default;
  };

  // All outlive it. The socket does not block.
  HttpOutput(HttpHost* host, boost::asio::ip::tcp::socket* socket,
             Owner* owner);

  void Queue(std::string bytes);
  // Writes what a round of tasks has queued.
  void Flush();
  // No call of the owner comes after it.
  void Close();

  // Of what is queued and not yet the kernel's.
  size_t bytes() const { return bytes_; }
  bool empty() const { return pieces_.empty(); }

 private:
  void Write();
  void OnWrite(const Error& error, size_t bytes);
  // So many bytes of what is queued are the kernel's.
  void Took(size_t bytes);
  void SetDeadline();

  HttpHost* const host_;
  boost::asio::ip::tcp::socket* const socket_;
  Owner* const owner_;
  boost::asio::steady_timer timer_;
  std::deque<std::string> pieces_;
  size_t offset_ = 0;  // written of the first
  size_t bytes_ = 0;
  bool flushes_ = false;  // Flush will be called
  bool writing_ = false;  // a write waits for room
  bool closed_ = false;
};

}  // namespace penstock
