#include "weft/comm/rendezvous/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::comm::rendezvous {
namespace {

using base::Descriptor;
using base::text;

constexpr auto kBetweenTries = std::chrono::milliseconds(50);
constexpr int kQueue = 1024;
constexpr int kAtOnce = 64;  // connections accepted before others are served

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses addresses_of(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0) {
    throw base::SystemError(
        text("MASTER_ADDR={}: {}: it must be a name or an address of the "
             "machine of rank 0",
             base::shown(address),
             ::gai_strerror(failed)));
  }
  return {found, &::freeaddrinfo};
}

Descriptor make_socket(int family) {
  const int made = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) base::throw_errno("socket");
  return {made, "a socket"};
}

bool is_loopback(const addrinfo& at) {
  if (at.ai_family == AF_INET) {
    const auto* name = reinterpret_cast<const sockaddr_in*>(at.ai_addr);
    return ntohl(name->sin_addr.s_addr) >> 24 == 127;
  }
  const auto* name = reinterpret_cast<const sockaddr_in6*>(at.ai_addr);
  return IN6_IS_ADDR_LOOPBACK(&name->sin6_addr) != 0;
}

void take_every_address(addrinfo& at) {
  if (at.ai_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(at.ai_addr)->sin_addr.s_addr = htonl(INADDR_ANY);
  } else {
    reinterpret_cast<sockaddr_in6*>(at.ai_addr)->sin6_addr = in6addr_any;
  }
}

void send_at_once(const Descriptor& socket) {
  const int yes = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  // Also detects a peer machine that vanished without closing the connection.
  ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 60'000));
}

// True if connected; otherwise errno has the reason.
bool try_connect(const Descriptor& socket, const addrinfo& at, Clock::time_point deadline) {
  make_nonblocking(socket);
  if (::connect(socket.get(), at.ai_addr, at.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd ready{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  while (::poll(&ready, 1, milliseconds_until(deadline)) == 0) {
    if (Clock::now() < deadline) continue;
    errno = ETIMEDOUT;
    return false;
  }
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  errno = error;
  return error == 0;
}

}  // namespace

Clock::time_point seconds_from_now(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

Descriptor listen_at(const std::string& address, int port) {
  const Addresses found = addresses_of(address, port);
  addrinfo& at = *found;
  if (!is_loopback(at)) take_every_address(at);
  Descriptor socket = make_socket(at.ai_family);
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(socket.get(), at.ai_addr, at.ai_addrlen) != 0 || ::listen(socket.get(), kQueue) != 0) {
    base::throw_errno(text("rank 0 cannot listen at port {} (choose another MASTER_PORT)", port));
  }
  make_nonblocking(socket);
  return socket;
}

int free_port() {
  const Descriptor socket = make_socket(AF_INET);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_ANY);
  auto* address = reinterpret_cast<sockaddr*>(&name);
  socklen_t length = sizeof name;
  if (::bind(socket.get(), address, length) != 0 ||
      ::getsockname(socket.get(), address, &length) != 0) {
    base::throw_errno("rank 0 finds no free port");
  }
  return ntohs(name.sin_port);
}

Descriptor connect_to(const std::string& address, int port, Clock::time_point deadline) {
  while (true) {
    const Addresses found = addresses_of(address, port);
    int reason = 0;
    for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
      Descriptor socket = make_socket(at->ai_family);
      if (try_connect(socket, *at, deadline)) {
        send_at_once(socket);
        return socket;
      }
      reason = errno;
    }
    if (Clock::now() + kBetweenTries >= deadline) {
      throw base::SystemError(
          text("nobody answers at {}:{} ({}): rank 0 must run there (MASTER_ADDR, MASTER_PORT) and "
               "be reached through any firewall",
               base::shown(address),
               port,
               std::strerror(reason)));
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
}

std::pair<Descriptor, Descriptor> connected_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    base::throw_errno("socketpair");
  }
  std::pair both{Descriptor(ends[0], "a socket"), Descriptor(ends[1], "a socket")};
  make_nonblocking(both.first);
  make_nonblocking(both.second);
  return both;
}

std::vector<Descriptor> accept_waiting(const Descriptor& listener) {
  std::vector<Descriptor> taken;
  while (std::ssize(taken) < kAtOnce) {
    const int accepted = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (accepted < 0) break;
    send_at_once(taken.emplace_back(accepted, "a socket"));
  }
  return taken;
}

void make_nonblocking(const Descriptor& socket) {
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    base::throw_errno("fcntl");
  }
}

Received receive_into(std::string& bytes, const Descriptor& socket, std::size_t most) {
  const std::size_t before = bytes.size();
  bytes.resize(before + most);
  const ssize_t came = ::recv(socket.get(), bytes.data() + before, most, MSG_DONTWAIT);
  bytes.resize(before + static_cast<std::size_t>(std::max<ssize_t>(came, 0)));
  if (came > 0) return Received::Bytes;
  const bool later = came < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  return later ? Received::Nothing : Received::End;
}

bool send_all(const Descriptor& socket, std::string_view bytes, Clock::time_point deadline) {
  std::string left(bytes);
  while (send_some(socket, left)) {
    if (left.empty()) return true;
    if (Clock::now() >= deadline) return false;
    pollfd ready{.fd = socket.get(), .events = POLLOUT, .revents = 0};
    ::poll(&ready, 1, milliseconds_until(deadline));
  }
  return false;
}

bool send_some(const Descriptor& socket, std::string& bytes) {
  while (!bytes.empty()) {
    const ssize_t went =
        ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (went < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    bytes.erase(0, static_cast<std::size_t>(went));
  }
  return true;
}

}  // namespace weft::comm::rendezvous
