#include "weft/grid/fabric.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "weft/base/check.h"
#include "weft/base/random.h"
#include "weft/base/text.h"

namespace weft::grid {
namespace {

// End of time: two times up to this value add without overflow.
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 2;

std::int64_t nanoseconds(double seconds) {
  const double ns = seconds * 1e9;
  return ns < static_cast<double>(kNever) ? std::llround(ns) : kNever;
}

std::int64_t later(std::int64_t time_ns, std::int64_t by_ns) {
  return std::min(kNever, time_ns + by_ns);
}

std::int64_t time_on_port(const Link& link, std::int64_t bytes) {
  if (link.bytes_per_second == 0 || bytes == 0) return 0;
  return nanoseconds(static_cast<double>(bytes) / link.bytes_per_second);
}

// Position of a rank among the members of an operation.
struct Seat {
  int rank = 0;
  int machine = 0;  // index of its machine
  int place = 0;    // index within its machine
};

struct Seating {
  std::vector<Seat> seats;  // by rank
  int machines = 0;
  int places = 0;  // in the largest machine

  const Seat& of(int rank) const {
    return *std::lower_bound(seats.begin(), seats.end(), rank, [](const Seat& seat, int r) {
      return seat.rank < r;
    });
  }
};

Seating seat(const Fabric& fabric, std::span<const Transfer> transfers) {
  std::vector<int> ranks;
  for (const Transfer& transfer : transfers) {
    ranks.push_back(transfer.from);
    ranks.push_back(transfer.to);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  Seating all;
  for (const int rank : ranks) {
    const bool first = all.seats.empty() || !fabric.same_machine(all.seats.back().rank, rank);
    if (first) ++all.machines;
    const int place = first ? 0 : all.seats.back().place + 1;
    all.seats.push_back({.rank = rank, .machine = all.machines - 1, .place = place});
    all.places = std::max(all.places, place + 1);
  }
  return all;
}

int distance(int from, int to, int size) { return (to - from + size) % size; }

}  // namespace

bool Fabric::is_free() const {
  const bool one_machine = ranks_per_node == 0;
  return jitter_seconds == 0 && intra.is_free() && (one_machine || inter.is_free());
}

std::string describe(const Fabric& fabric) {
  if (fabric.is_free()) return "free fabric: bytes take no time";
  const auto link = [](const Link& of) {
    const std::string rate = of.bytes_per_second == 0
                                 ? "any bandwidth"
                                 : base::text("{:.6g} GB/s", of.bytes_per_second / 1e9);
    return base::text("{} + {:.6g} us", rate, of.latency_seconds * 1e6);
  };
  std::string text = "emulated fabric: ";
  text += fabric.ranks_per_node == 0 ? base::text("one machine, {}", link(fabric.intra))
                                     : base::text("{} a machine, inside {}, between machines {}",
                                                  base::counted(fabric.ranks_per_node, "rank"),
                                                  link(fabric.intra),
                                                  link(fabric.inter));
  if (fabric.jitter_seconds > 0) {
    text += base::text(", jitter up to {:.6g} us", fabric.jitter_seconds * 1e6);
  }
  return text;
}

Ports::Ports(const Fabric& fabric, int world) : fabric_(fabric), world_(world) {
  CHECK(world >= 1 && fabric.ranks_per_node >= 0,
        "a fabric of {} ranks, {} a machine",
        world,
        fabric.ranks_per_node);
  for (const double number : {fabric.intra.bytes_per_second,
                              fabric.intra.latency_seconds,
                              fabric.inter.bytes_per_second,
                              fabric.inter.latency_seconds,
                              fabric.jitter_seconds}) {
    CHECK(std::isfinite(number) && number >= 0, "a fabric with {} of something", number);
  }
  for (Busy* busy : {&intra_, &inter_}) {
    busy->out.resize(static_cast<std::size_t>(world));
    busy->in.resize(static_cast<std::size_t>(world));
  }
}

void Ports::reserve(std::int64_t now_ns,
                    std::span<const Transfer> transfers,
                    std::span<std::int64_t> end_ns) {
  CHECK(transfers.size() == end_ns.size(),
        "{} transfers and room for {} ends",
        transfers.size(),
        end_ns.size());
  for (const Transfer& transfer : transfers) {
    const auto in_world = [&](int rank) { return rank >= 0 && rank < world_; };
    CHECK(in_world(transfer.from) && in_world(transfer.to) && transfer.from != transfer.to &&
              transfer.bytes >= 0,
          "a transfer of {} bytes from rank {} to rank {} of {}",
          transfer.bytes,
          transfer.from,
          transfer.to,
          world_);
  }
  for (const std::size_t i : take_turns(transfers)) end_ns[i] = reserve_one(now_ns, transfers[i]);
}

// Orders transfers by distance of the machines, then of the places within them. No two transfers of
// a turn leave or enter the same rank, and all use the same kind of port. Neither kind of port
// waits for the other.
std::vector<std::size_t> Ports::take_turns(std::span<const Transfer> transfers) const {
  std::vector<std::size_t> order(transfers.size());
  std::iota(order.begin(), order.end(), 0u);
  if (order.size() < 2) return order;
  const Seating seating = seat(fabric_, transfers);
  using Turn = std::tuple<int, int, int>;
  std::vector<Turn> turns;
  turns.reserve(transfers.size());
  for (const Transfer& transfer : transfers) {
    const Seat& from = seating.of(transfer.from);
    const Seat& to = seating.of(transfer.to);
    turns.emplace_back(distance(from.machine, to.machine, seating.machines),
                       distance(from.place, to.place, seating.places),
                       transfer.from);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return turns[a] < turns[b];
  });
  return order;
}

std::int64_t Ports::reserve_one(std::int64_t now_ns, const Transfer& transfer) {
  const bool inside = fabric_.same_machine(transfer.from, transfer.to);
  const Link& link = inside ? fabric_.intra : fabric_.inter;
  std::int64_t sent = now_ns;
  if (const std::int64_t duration = time_on_port(link, transfer.bytes); duration > 0) {
    Busy& busy = inside ? intra_ : inter_;
    std::int64_t& out = busy.out[static_cast<std::size_t>(transfer.from)];
    std::int64_t& in = busy.in[static_cast<std::size_t>(transfer.to)];
    sent = later(std::max({now_ns, out, in}), duration);
    out = in = sent;
  }
  return later(later(sent, nanoseconds(link.latency_seconds)), jitter_of(transfer));
}

std::int64_t Ports::jitter_of(const Transfer& transfer) {
  if (fabric_.jitter_seconds == 0) return 0;
  const auto pair = static_cast<std::uint64_t>(transfer.from) * static_cast<std::uint64_t>(world_) +
                    static_cast<std::uint64_t>(transfer.to);
  const std::uint64_t number = drawn_[pair]++;
  const double share = base::uniform(base::combine(fabric_.seed, pair), number);
  return static_cast<std::int64_t>(share *
                                   static_cast<double>(nanoseconds(fabric_.jitter_seconds)));
}

}  // namespace weft::grid
