#include "weft/comm/rendezvous/server.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::comm::rendezvous {
namespace {

using base::text;
using Kind = Message::Kind;

constexpr int kServerTick = 20;         // ms
constexpr double kHelloSeconds = 10;    // time for a connection to send its hello
constexpr double kFarewellSeconds = 1;  // time for pending messages at the end
constexpr int kMostStrangers = 256;     // most connections without a hello at once
constexpr std::size_t kMostValues = 1 << 20;

}  // namespace

Server::Server(const Place& place, double timeout_seconds)
    : place_(place),
      timeout_seconds_(timeout_seconds),
      deadline_(seconds_from_now(timeout_seconds)),
      own_end_(-1, "a socket") {
  if (place.world > 1) listener_ = listen_at(place.address, place.port);
  auto [theirs, ours] = connected_pair();
  own_end_ = std::move(theirs);
  peers_.push_back({.socket = std::move(ours), .hello_until = deadline_});
  thread_ = std::thread([this] { serve(); });
}

Server::~Server() {
  stopping_ = true;
  thread_.join();
}

void Server::serve() {
  while (!stopping_) {
    wait_for_news();
    admit();
    for (Peer& peer : peers_) hear(peer);
    look_at_the_clock();
    send_pending();
    std::erase_if(peers_, [](const Peer& peer) { return peer.is_gone; });
  }
  const auto until = seconds_from_now(kFarewellSeconds);
  for (const Peer& peer : peers_) {
    if (peer.rank > 0) send_all(peer.socket, peer.out, until);
  }
}

void Server::wait_for_news() {
  std::vector<pollfd> all;
  if (takes_more()) all.push_back({.fd = listener_->get(), .events = POLLIN, .revents = 0});
  for (const Peer& peer : peers_) {
    const int writes = peer.out.empty() ? 0 : POLLOUT;
    all.push_back(
        {.fd = peer.socket.get(), .events = static_cast<short>(POLLIN | writes), .revents = 0});
  }
  ::poll(all.data(), all.size(), kServerTick);
}

bool Server::takes_more() const {
  return listener_ && std::ssize(peers_) - here() < kMostStrangers;
}

void Server::admit() {
  if (!takes_more()) return;
  for (base::Descriptor& socket : accept_waiting(*listener_)) {
    peers_.push_back({.socket = std::move(socket), .hello_until = seconds_from_now(kHelloSeconds)});
  }
}

void Server::hear(Peer& peer) {
  if (peer.is_gone) return;
  const Received received = receive_into(peer.in, peer.socket, kLongestMessage);
  try {
    while (const auto message = take_message(peer.in)) answer(peer, *message);
  } catch (const base::SystemError& error) {
    if (peer.rank >= 0) fail(peer.rank, text("it sent rank 0 damaged bytes: {}", error.what()));
    peer.is_gone = true;
    return;
  }
  if (received == Received::End) lose(peer);
}

void Server::answer(Peer& peer, const Message& message) {
  if (peer.is_gone) return;
  if (peer.rank < 0) return greet(peer, message);
  switch (message.kind) {
    case Kind::Put:
      if (values_.size() < kMostValues) values_.try_emplace(message.key, message.value);
      for (const int rank : std::exchange(waiting_[message.key], {})) {
        if (Peer* other = find(rank)) give_value(*other, message.key);
      }
      waiting_.erase(message.key);
      return;
    case Kind::Get:
      if (values_.contains(message.key)) return give_value(peer, message.key);
      waiting_[message.key].insert(peer.rank);
      return;
    case Kind::Failed:
      return fail(peer.rank, message.value);
    case Kind::Ended:
      peer.has_ended = true;
      if (std::ranges::count_if(peers_, &Peer::has_ended) == place_.world) {
        tell_all({.kind = Kind::AllEnded});
      }
      return;
    case Kind::Hello:
    case Kind::Welcome:
    case Kind::Refused:
    case Kind::Value:
    case Kind::AllEnded:
      throw base::SystemError("a message that ranks do not send");
  }
}

std::optional<std::string> Server::wrong_with(const Message& hello) const {
  if (hello.number != place_.world) {
    return text(
        "rank {} was started for a world of {} and rank 0 for one of {}: start all with "
        "the same WORLD_SIZE",
        hello.rank,
        hello.number,
        place_.world);
  }
  if (hello.rank < 0 || hello.rank >= place_.world) {
    return text("rank {} is none of a world of {}", hello.rank, place_.world);
  }
  const bool is_here = std::ranges::find(peers_, hello.rank, &Peer::rank) != peers_.end();
  if (is_here) {
    return text(
        "two processes say that they are rank {}: each needs a RANK of its own, and each "
        "run a MASTER_PORT of its own",
        hello.rank);
  }
  return std::nullopt;
}

void Server::greet(Peer& peer, const Message& hello) {
  if (hello.kind != Kind::Hello) throw base::SystemError("a message before the hello");
  if (const auto wrong = wrong_with(hello)) {
    tell(peer, {.kind = Kind::Refused, .value = *wrong});
    send_all(peer.socket, std::exchange(peer.out, {}), seconds_from_now(0.1));
    peer.is_gone = true;
    if (!is_complete_) fail(std::clamp(hello.rank, 0, place_.world - 1), *wrong);
    return;
  }
  peer.rank = hello.rank;
  peer.card = hello.key;
  if (failure_) {
    tell(peer, {.kind = Kind::Failed, .rank = failure_->rank, .value = failure_->reason});
  } else if (here() == place_.world) {
    complete();
  }
}

void Server::complete() {
  std::map<std::string, int> cards;
  for (const Peer& peer : peers_) {
    if (peer.rank < 0 || peer.card.empty()) continue;
    const auto [other, is_new] = cards.emplace(peer.card, peer.rank);
    if (is_new) continue;
    return fail(std::max(peer.rank, other->second),
                text("ranks {} and {} are on the same card, {}, and NCCL takes one rank a card: "
                     "start as many ranks on a machine as it has GPUs, each with a LOCAL_RANK of "
                     "its own, or use runtime.backend=threads, whose ranks share cards",
                     std::min(peer.rank, other->second),
                     std::max(peer.rank, other->second),
                     base::shown(peer.card)));
  }
  is_complete_ = true;
  listener_.reset();
  for (Peer& peer : peers_) {
    if (peer.rank < 0) peer.is_gone = true;
  }
  tell_all({.kind = Kind::Welcome});
}

void Server::give_value(Peer& peer, const std::string& key) {
  tell(peer, {.kind = Kind::Value, .key = key, .value = values_.at(key)});
}

void Server::look_at_the_clock() {
  const auto now = Clock::now();
  for (Peer& peer : peers_) {
    if (peer.rank < 0 && now >= peer.hello_until) peer.is_gone = true;
  }
  if (is_complete_ || failure_ || now < deadline_) return;
  std::vector<int> missing;
  for (int rank = 0; rank < place_.world; ++rank) {
    if (find(rank) == nullptr) missing.push_back(rank);
  }
  const std::string others =
      missing.size() == 1 ? "" : text("; {} of {} are missing", missing.size(), place_.world);
  fail(missing.front(),
       text("it did not come to rank 0 at {}:{} within {} s{}",
            place_.address,
            place_.port,
            timeout_seconds_,
            others));
}

void Server::lose(Peer& peer) {
  peer.is_gone = true;
  if (peer.rank >= 0 && !peer.has_ended) fail(peer.rank, "its process ended without a word");
}

void Server::fail(int rank, const std::string& reason) {
  if (failure_) return;
  failure_ = Failure{.rank = rank, .reason = base::without_controls(reason)};
  tell_all({.kind = Kind::Failed, .rank = rank, .value = failure_->reason});
}

void Server::tell_all(const Message& message) {
  for (Peer& peer : peers_) {
    if (peer.rank >= 0) tell(peer, message);
  }
}

Server::Peer* Server::find(int rank) {
  const auto found = std::ranges::find(peers_, rank, &Peer::rank);
  return found == peers_.end() ? nullptr : &*found;
}

int Server::here() const {
  return static_cast<int>(
      std::ranges::count_if(peers_, [](const Peer& peer) { return peer.rank >= 0; }));
}

void Server::send_pending() {
  for (Peer& peer : peers_) {
    if (!peer.is_gone && !send_some(peer.socket, peer.out)) lose(peer);
  }
}

}  // namespace weft::comm::rendezvous
