// Rendezvous server: a thread of rank 0's process, with a connection to every rank during the run.
// It waits for all ranks, passes small values between them and tells every rank of the first
// failure. A failure is a message that says so, or a lost connection.
//
// Connections from strangers are dropped without effect; none is accepted after all ranks have
// arrived. There is no secret: a program that speaks the protocol may claim a rank. NCCL's own
// connections have no secret either. Both need a private network.
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
  // Starts to listen. SystemError if it cannot.
  Server(const Place& place, double timeout_seconds);
  // Sends pending messages for a short while, then closes the connections.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Rank 0's own connection; take it once.
  base::Descriptor take_own_end() { return std::move(own_end_); }

 private:
  struct Peer {
    base::Descriptor socket;
    Clock::time_point hello_until;
    int rank = -1;  // -1: no hello yet
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
  std::map<std::string, std::set<int>> waiting_;  // waiting ranks by key
  std::optional<Failure> failure_;
  bool is_complete_ = false;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace weft::comm::rendezvous
