// Model of the links between ranks: when do bytes arrive? Each rank has two full-duplex ports, one
// within its machine and one between machines. Pure: the emulated fabric passes the real time, the
// simulator its own clock.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace weft::grid {

struct Link {
  double bytes_per_second = 0;  // 0: bytes take no time
  double latency_seconds = 0;

  bool is_free() const { return bytes_per_second == 0 && latency_seconds == 0; }
};

struct Fabric {
  int ranks_per_node = 0;  // 0: all ranks in one machine
  Link intra, inter;       // within a machine; between machines
  double jitter_seconds = 0;
  std::uint64_t seed = 0;  // for the jitter

  // True if all transfers arrive at once.
  bool is_free() const;
  int machine_of(int rank) const { return ranks_per_node == 0 ? 0 : rank / ranks_per_node; }
  bool same_machine(int a, int b) const { return machine_of(a) == machine_of(b); }
};

// "emulated fabric: 2 ranks a machine, inside 1 GB/s + 5 us, between machines ...": for reports,
// which must say that links are emulated.
std::string describe(const Fabric& fabric);

struct Transfer {
  int from = 0, to = 0;  // world ranks
  std::int64_t bytes = 0;
};

// Busy times of a world's ports. Not thread-safe.
//
// A transfer occupies the sender's output port and the receiver's input port, of its kind of link.
// It starts when both are free, and lasts bytes / bandwidth. It arrives after the latency and a
// random part of the jitter, during which no port is occupied. Zero bytes occupy no port.
class Ports {
 public:
  Ports(const Fabric& fabric, int world);

  // Reserves all transfers of one operation, whose members have all arrived at `now_ns`; writes the
  // end of each. The order of waits does not depend on the order of `transfers`: they take turns by
  // distance, first all to their next rank, then to the one after. An all-to-all of equal parts
  // therefore never queues behind itself.
  //
  // Deterministic: the jitter depends on the seed, the two ranks and the number of earlier
  // transfers between them in this direction.
  void reserve(std::int64_t now_ns,
               std::span<const Transfer> transfers,
               std::span<std::int64_t> end_ns);

 private:
  // End of use of the two directions of each rank's port.
  struct Busy {
    std::vector<std::int64_t> out, in;
  };

  std::int64_t reserve_one(std::int64_t now_ns, const Transfer& transfer);
  std::int64_t jitter_of(const Transfer& transfer);
  std::vector<std::size_t> take_turns(std::span<const Transfer> transfers) const;

  const Fabric fabric_;
  const int world_;
  Busy intra_, inter_;
  // transfers so far, by sender and receiver
  std::unordered_map<std::uint64_t, std::uint64_t> drawn_;
};

}  // namespace weft::grid
