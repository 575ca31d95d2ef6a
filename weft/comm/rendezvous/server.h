// Where ranks meet before they can talk: a thread of rank 0's process that every rank is connected
// to as long as the run lasts. It knows when all have come, passes small values between them, and
// tells all of them who failed first: whoever says so, or whoever's connection ends.
//
// Strangers that reach the port are dropped and change nothing; nobody is let in once all ranks are
// here. There is no secret, though: who speaks the protocol may say that he is a rank. NCCL's own
// connections ask for none either; both want a network of one's own.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "weft/comm/failure.h"
#include "weft/comm/rendezvous/message.h"
#include "weft/comm/rendezvous/place.h"
#include "weft/comm/rendezvous/socket.h"

namespace weft::comm::rendezvous {

class Server {
 public:
  // Listens from now on. SystemError where it cannot.
  Server(const Place& place, double timeout_seconds);
  // Sends what is left to say, for a short while, and closes the connections.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Rank 0's own connection; taken once.
  base::Descriptor take_own_end() { return std::move(own_end_); }

 private:
  struct Peer {
    base::Descriptor socket;
    Clock::time_point hello_until;
    int rank = -1;  // none: it has not said hello
    std::string in = {}, out = {};
    std::string card = {};
    bool has_ended = false;
    bool is_gone = false;
  };

  void serve();
  void wait_for_news();
  bool takes_more() const;
  void admit();
  void hear(Peer& peer);
  void answer(Peer& peer, const Message& message);
  void greet(Peer& peer, const Message& hello);
  std::optional<std::string> wrong_with(const Message& hello) const;
  void complete();
  void give_value(Peer& peer, const std::string& key);
  void look_at_the_clock();
  void lose(Peer& peer);
  void fail(int rank, const std::string& reason);
  void tell(Peer& peer, const Message& message) { peer.out += encoded(message); }
  void tell_all(const Message& message);
  Peer* find(int rank);
  int here() const;
  void send_pending();

  const Place place_;
  const double timeout_seconds_;
  const Clock::time_point deadline_;
  std::optional<base::Descriptor> listener_;
  base::Descriptor own_end_;
  std::vector<Peer> peers_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::set<int>> waiting_;  // ranks, by key
  std::optional<Failure> failure_;
  bool is_complete_ = false;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace weft::comm::rendezvous
