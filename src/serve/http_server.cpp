#include "serve/http_server.hpp"

#include <sys/resource.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>

#include <fmt/format.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "serve/http_session.hpp"

namespace thalweg::serve {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Error = boost::system::error_code;

constexpr int kBacklog = 4096;
constexpr std::size_t kOtherFiles = 64;  // files that are not connections
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::chrono::milliseconds kLastWords{5000};  // for telling clients that their answer was cut

// As many as the limit of open files, raised as far as allowed, leaves.
std::size_t connections_allowed() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024 - kOtherFiles;
  if (limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    ::getrlimit(RLIMIT_NOFILE, &limit);
  }
  return limit.rlim_cur > 2 * kOtherFiles ? static_cast<std::size_t>(limit.rlim_cur) - kOtherFiles
                                          : kOtherFiles;
}

tcp::acceptor listen(asio::io_context& io, const HttpServerOptions& options) {
  Error error;
  const auto address =
      asio::ip::make_address(options.host == "localhost" ? "127.0.0.1" : options.host, error);
  if (error)
    throw UsageError(fmt::format("--host: expected an IP address of this machine, found {}", options.host));
  const tcp::endpoint endpoint(address, options.port);
  tcp::acceptor acceptor(asio::make_strand(io));
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(kBacklog, error);
  if (error == asio::error::address_in_use || error == asio::error::access_denied) {
    throw UsageError(fmt::format("--port: cannot listen on port {}: {}", options.port, error.message()));
  }
  if (error) {
    throw UsageError(fmt::format("--host: cannot listen on {}: {}", options.host, error.message()));
  }
  return acceptor;
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(Service& service, const HttpServerOptions& options)
      : service_(service),
        options_(options),
        most_(options.max_connections > 0 ? options.max_connections : connections_allowed()),
        acceptor_(listen(io_, options)),
        pause_(acceptor_.get_executor()),
        workers_(options.workers) {
    port_ = acceptor_.local_endpoint().port();
    asio::post(acceptor_.get_executor(), [this] { accept(); });
    for (std::size_t i = 0; i < options.threads; ++i) {
      threads_.emplace_back([this] { io_.run(); });
    }
  }

  ~Impl() {
    workers_.stop();
    workers_.join();
    io_.stop();
    for (std::thread& thread : threads_) thread.join();
  }

  std::uint16_t port() const { return port_; }

  bool drain(std::chrono::milliseconds limit) {
    service_.drain();
    asio::post(acceptor_.get_executor(), [this] {
      closed_ = true;
      Error ignored;
      acceptor_.close(ignored);
      pause_.cancel();
    });
    for_each([](HttpSession& session) { session.drain(); });
    if (wait_until_empty(limit)) return true;
    for_each([](HttpSession& session) { session.cut(); });
    wait_until_empty(kLastWords);
    for_each([](HttpSession& session) { session.stop(); });
    return false;
  }

 private:
  void accept() {
    acceptor_.async_accept(asio::make_strand(io_), [this](const Error& error, tcp::socket socket) {
      if (closed_) return;
      if (error) {
        // Out of files, most likely: connections that end make room.
        pause_.expires_after(kAcceptPause);
        pause_.async_wait([this](const Error&) {
          if (!closed_) accept();
        });
        return;
      }
      admit(std::move(socket));
      accept();
    });
  }

  void admit(tcp::socket socket) {
    Error ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    // May be the last to let go of the session, which needs the lock: so it is held outside of it.
    const std::shared_ptr<HttpSession> session = open_session(socket);
    if (session) {
      session->start();
    } else {
      turn_away(std::move(socket));
    }
  }

  // Takes the socket over, or leaves it alone and returns null while as many connections are open as may be.
  std::shared_ptr<HttpSession> open_session(tcp::socket& socket) {
    const std::lock_guard lock(mutex_);
    if (sessions_.size() >= most_) return nullptr;
    const std::uint64_t id = ++last_id_;
    auto session = std::make_shared<HttpSession>(
        std::move(socket), SessionContext{service_, options_, workers_}, [this, id] { forget(id); });
    sessions_[id] = session;
    return session;
  }

  void turn_away(tcp::socket socket) {
    const HttpReply reply =
        service_.refuse({}, unavailable("Too many connections are open. Try again later."));
    Error ignored;
    socket.non_blocking(true, ignored);
    asio::write(socket, asio::buffer(whole_reply(reply, false, false)), ignored);
  }

  void forget(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    sessions_.erase(id);
    if (sessions_.empty()) empty_.notify_all();
  }

  template <class Action>
  void for_each(Action action) {
    std::vector<std::shared_ptr<HttpSession>> sessions;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [id, session] : sessions_) {
        if (auto alive = session.lock()) sessions.push_back(std::move(alive));
      }
    }
    for (const auto& session : sessions) action(*session);
  }

  bool wait_until_empty(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    return empty_.wait_for(lock, limit, [&] { return sessions_.empty(); });
  }

  Service& service_;
  const HttpServerOptions options_;
  std::size_t most_;
  // Sessions tell these of their end, also when the io_context takes them down with it.
  std::mutex mutex_;
  std::condition_variable empty_;
  std::map<std::uint64_t, std::weak_ptr<HttpSession>> sessions_;
  std::uint64_t last_id_ = 0;

  asio::io_context io_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  bool closed_ = false;
  asio::thread_pool workers_;
  std::uint16_t port_ = 0;
  std::vector<std::thread> threads_;
};

HttpServer::HttpServer(Service& service, const HttpServerOptions& options)
    : impl_(std::make_unique<Impl>(service, options)) {}

HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const {
  return impl_->port();
}

bool HttpServer::drain(std::chrono::milliseconds limit) {
  return impl_->drain(limit);
}

}  // namespace thalweg::serve
