// Sockets of the rendezvous: rank 0 listens, the other ranks connect.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/files/descriptor.h"

namespace weft::comm::rendezvous {

using Clock = std::chrono::steady_clock;
Clock::time_point seconds_from_now(double seconds);

// Listens at every address of this machine; for a loopback `address`, at that address only.
// SystemError if the port is taken or the address is unknown.
base::Descriptor listen_at(const std::string& address, int port);

// A port of this machine that is free now.
int free_port();

// Retries until a listener answers; SystemError with the last reason at the deadline.
base::Descriptor connect_to(const std::string& address, int port, Clock::time_point deadline);

// Two ends of one connection inside this process.
std::pair<base::Descriptor, base::Descriptor> connected_pair();

// Accepts the waiting connections, a limited number at once.
std::vector<base::Descriptor> accept_waiting(const base::Descriptor& listener);

void make_nonblocking(const base::Descriptor& socket);

enum class Received { Bytes, Nothing, End };
// Appends the available bytes, at most `most`, without waiting. An error counts as End.
Received receive_into(std::string& bytes, const base::Descriptor& socket, std::size_t most);

// Sends all bytes and waits for a slow peer, at most until the deadline. True if all bytes were
// sent.
bool send_all(const base::Descriptor& socket, std::string_view bytes, Clock::time_point deadline);
// Sends without waiting and removes the sent part from `bytes`. False if the peer is gone.
bool send_some(const base::Descriptor& socket, std::string& bytes);

}  // namespace weft::comm::rendezvous
