#include "weft/exec/sim/contention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "weft/schedule/meeting.h"

namespace weft::exec::sim {
namespace {

constexpr int kRounds = 6;

std::size_t index_of(int i) { return static_cast<std::size_t>(i); }

// Piecewise constant rate over time, and its integral.
class StepFunction {
 public:
  void add(std::int64_t from_ns, std::int64_t to_ns, double amount) {
    if (to_ns <= from_ns) return;
    changes_.push_back({from_ns, amount});
    changes_.push_back({to_ns, -amount});
  }

  // Replaces the changes by the integral of `of(sum at a moment)`.
  template <typename Of>
  void integrate(const Of& of) {
    std::ranges::sort(changes_, {}, &Change::at_ns);
    double level = 0, sum = 0;
    std::int64_t before_ns = 0;
    for (const Change& change : changes_) {
      sum += of(level) * static_cast<double>(change.at_ns - before_ns);
      level += change.amount;
      before_ns = change.at_ns;
      moments_.push_back({before_ns, sum, of(level)});
    }
    at_rest_ = of(0);
  }

  double mean(std::int64_t from_ns, std::int64_t to_ns) const {
    return (until(to_ns) - until(from_ns)) / static_cast<double>(to_ns - from_ns);
  }

 private:
  struct Change {
    std::int64_t at_ns = 0;
    double amount = 0;
  };
  struct Moment {
    std::int64_t at_ns = 0;
    double sum = 0, rate_after = 0;
  };

  double until(std::int64_t ns) const {
    const auto after = std::ranges::upper_bound(moments_, ns, {}, &Moment::at_ns);
    if (after == moments_.begin()) return at_rest_ * static_cast<double>(ns);
    const Moment& last = *std::prev(after);
    return last.sum + last.rate_after * static_cast<double>(ns - last.at_ns);
  }

  std::vector<Change> changes_;
  std::vector<Moment> moments_;
  double at_rest_ = 0;
};

using Numbers = std::vector<std::vector<double>>;  // by rank and entry

class Slowing {
 public:
  Slowing(const SimulatedStep& step, const Contention& contention)
      : step_(step), contention_(contention) {
    for (const schedule::Graph* graph : step.graphs) {
      factors_.emplace_back(graph->entries.size(), 1);
      turns_.emplace_back(graph->entries.size(), 0);
    }
  }

  bool is_needed() const {
    const std::vector<double>& each = contention_.cores_of_rank;
    const double wanted = each.empty() ? static_cast<double>(step_.graphs.size())
                                       : std::accumulate(each.begin(), each.end(), 0.0);
    const bool shares_cores = contention_.cores > 0 && wanted > contention_.cores;
    return shares_cores || contention_.beside_communication > 0 || contention_.beside_compute > 0;
  }

  Result run() {
    SimulatedStep slowed = step_;
    slowed.cost = [this](int rank, int entry) {
      Cost cost = step_.cost(rank, entry);
      cost.seconds *= factors_[index_of(rank)][index_of(entry)];
      cost.seconds += turns_[index_of(rank)][index_of(entry)];
      return cost;
    };
    Result result = sim::simulate(slowed);
    for (int round = 0; round < kRounds; ++round) {
      // averages from the second round on, to prevent oscillation
      learn(result, round == 0 ? 1 : 0.5);
      result = sim::simulate(slowed);
    }
    return result;
  }

 private:
  double cores_of(std::size_t rank) const {
    return contention_.cores_of_rank.empty() ? 1 : contention_.cores_of_rank[rank];
  }

  template <typename Do>
  void for_compute(const Result& result, std::size_t rank, const Do& work) {
    const std::vector<schedule::Entry>& entries = step_.graphs[rank]->entries;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const Interval& interval = result.entries[rank][i];
      const bool is_long = interval.end_ns > interval.begin_ns;
      if (entries[i].lane == schedule::Lane::Compute && is_long) work(i, interval);
    }
  }

  void learn(const Result& result, double weight) {
    StepFunction busy;
    for (std::size_t rank = 0; rank < step_.graphs.size(); ++rank) {
      for_compute(result, rank, [&](std::size_t, const Interval& interval) {
        busy.add(interval.begin_ns, interval.end_ns, cores_of(rank));
      });
    }
    const double cores = contention_.cores;
    busy.integrate([&](double level) { return cores > 0 ? std::max(1.0, level / cores) : 1.0; });
    for (std::size_t rank = 0; rank < step_.graphs.size(); ++rank) {
      slow_compute(result, rank, busy, weight);
      if (contention_.beside_compute > 0) slow_communication(result, rank, weight);
      if (shared_by_own(rank) > 0) wait_for_turns(result, rank, weight);
    }
  }

  // Fraction of the ranks represented by a simulated one that share a core with another of them.
  double shared_by_own(std::size_t rank) const {
    if (contention_.cores <= 0 || contention_.turn_seconds <= 0) return 0;
    return std::clamp(cores_of(rank) / contention_.cores - 1, 0.0, 1.0);
  }

  // Two ranks share a core: one computes up to an exchange, then does other work until its time
  // slice ends or no work is left. Then the other runs. The simulation runs both at half speed; the
  // second would then arrive after twice the compute before the exchange.
  void wait_for_turns(const Result& result, std::size_t rank, double weight) {
    const std::vector<schedule::Entry>& entries = step_.graphs[rank]->entries;
    const std::vector<TurnAt> turns = turns_at(result, rank);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!schedule::is_meeting(entries[i])) continue;
      double wait = 0;
      for (const int before : entries[i].waits) {
        const TurnAt& turn = turns[index_of(before)];
        const double left = std::max(0.0, contention_.turn_seconds - turn.before);
        wait = std::max(wait, shared_by_own(rank) * std::min(left, turn.after));
      }
      turns_[rank][i] += weight * (wait - turns_[rank][i]);
    }
  }

  // Uninterrupted compute of a rank around a node that an exchange waits for: since the previous
  // such node, up to this node's end, and after it. Zero for other nodes.
  struct TurnAt {
    double before = 0, after = 0;  // seconds
  };
  std::vector<TurnAt> turns_at(const Result& result, std::size_t rank) {
    const std::vector<schedule::Entry>& entries = step_.graphs[rank]->entries;
    std::vector<bool> is_waited_for(entries.size(), false);
    for (const schedule::Entry& entry : entries) {
      if (!schedule::is_meeting(entry)) continue;
      for (const int before : entry.waits) is_waited_for[index_of(before)] = true;
    }
    std::vector<TurnAt> turns(entries.size());
    std::vector<std::pair<std::size_t, double>> open;  // nodes, and the compute before them
    double since_pause = 0, since_node = 0;
    std::int64_t free_ns = 0;
    const auto pause = [&] {
      for (const auto& [node, seconds] : open) turns[node].after = since_pause - seconds;
      open.clear();
      since_pause = since_node = 0;
    };
    for_compute(result, rank, [&](std::size_t i, const Interval& interval) {
      if (interval.begin_ns > free_ns) pause();
      free_ns = interval.end_ns;
      const double seconds = step_.cost(static_cast<int>(rank), static_cast<int>(i)).seconds;
      since_pause += seconds;
      since_node += seconds;
      if (!is_waited_for[i]) return;
      turns[i].before = since_node;
      since_node = 0;
      open.push_back({i, since_pause});
    });
    pause();
    return turns;
  }

  static double is_any(double level) { return level > 0.5 ? 1.0 : 0.0; }

  void slow_compute(const Result& result,
                    std::size_t rank,
                    const StepFunction& busy,
                    double weight) {
    StepFunction wire;
    for_communication(result, rank, [&](std::size_t, const Interval& interval) {
      wire.add(interval.begin_ns, interval.end_ns, 1);
    });
    wire.integrate(is_any);
    for_compute(result, rank, [&](std::size_t i, const Interval& interval) {
      const double beside = wire.mean(interval.begin_ns, interval.end_ns);
      const double slower = (1 + contention_.beside_communication * beside) *
                            busy.mean(interval.begin_ns, interval.end_ns);
      factors_[rank][i] += weight * (slower - factors_[rank][i]);
    });
  }

  void slow_communication(const Result& result, std::size_t rank, double weight) {
    StepFunction computing;
    for_compute(result, rank, [&](std::size_t, const Interval& interval) {
      computing.add(interval.begin_ns, interval.end_ns, 1);
    });
    computing.integrate(is_any);
    for_communication(result, rank, [&](std::size_t i, const Interval& interval) {
      const double beside = computing.mean(interval.begin_ns, interval.end_ns);
      const double slower = 1 + contention_.beside_compute * beside;
      factors_[rank][i] += weight * (slower - factors_[rank][i]);
    });
  }

  // Calls work for the times in which a rank's bytes travel, without waits for other ranks.
  template <typename Do>
  void for_communication(const Result& result, std::size_t rank, const Do& work) {
    const std::vector<schedule::Entry>& entries = step_.graphs[rank]->entries;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!schedule::is_meeting(entries[i])) continue;
      const double seconds =
          factors_[rank][i] * step_.cost(static_cast<int>(rank), static_cast<int>(i)).seconds;
      Interval interval = result.entries[rank][i];
      const std::int64_t own_ns = std::llround(seconds * 1e9);
      interval.begin_ns = std::max(interval.begin_ns, interval.end_ns - own_ns);
      if (interval.end_ns > interval.begin_ns) work(i, interval);
    }
  }

  const SimulatedStep& step_;
  const Contention& contention_;
  Numbers factors_;
  Numbers turns_;  // seconds by which exchanges begin later
};

}  // namespace

Result simulate(const SimulatedStep& step, const Contention& contention) {
  Slowing slowing(step, contention);
  return slowing.is_needed() ? slowing.run() : simulate(step);
}

}  // namespace weft::exec::sim
