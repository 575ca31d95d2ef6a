// Sockets of the rendezvous: those that rank 0 listens at, and the one that a rank reaches it by.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/descriptor.h"

namespace weft::comm::rendezvous {

using Clock = std::chrono::steady_clock;
Clock::time_point seconds_from_now(double seconds);

// At every address of this machine, or at its own alone where `address` is a loopback one.
// SystemError where the port is taken, or the address is nobody's.
base::Descriptor listen_at(const std::string& address, int port);

// One of this machine's that nobody listens at now.
int free_port();

// Tries again until somebody listens there; SystemError with the last reason at the deadline.
base::Descriptor connect_to(const std::string& address, int port, Clock::time_point deadline);

// Two ends of one connection inside this process.
std::pair<base::Descriptor, base::Descriptor> connected_pair();

// A waiting connection, if there is one.
std::vector<base::Descriptor> accept_waiting(const base::Descriptor& listener);

void make_nonblocking(const base::Descriptor& socket);

enum class Received { Bytes, Nothing, End };
// Appends what has come, at most `most` bytes, without waiting. An error is the End.
Received receive_into(std::string& bytes, const base::Descriptor& socket, std::size_t most);

// Sends all of it, waiting while the other side is slow, at most until the deadline; whether it
// went.
bool send_all(const base::Descriptor& socket, std::string_view bytes, Clock::time_point deadline);
// Sends what goes without waiting and takes it off `bytes`; false where the other side is gone.
bool send_some(const base::Descriptor& socket, std::string& bytes);

}  // namespace weft::comm::rendezvous
