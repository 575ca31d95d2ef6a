#include "weft/plan/order/improve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "weft/base/casts.h"
#include "weft/base/random.h"
#include "weft/exec/sim/bounds.h"
#include "weft/exec/sim/simulate.h"
#include "weft/plan/cost/order_bound.h"
#include "weft/plan/order/list_schedule.h"
#include "weft/plan/price/simulated_step.h"
#include "weft/schedule/dependencies.h"
#include "weft/schedule/meeting.h"
#include "weft/schedule/memory/memory.h"
#include "weft/schedule/passes/rewrite.h"

namespace weft::plan {
namespace {

namespace sim = exec::sim;
using base::at;
using schedule::Direction;
using schedule::kNone;
using schedule::Node;
using schedule::RankPlan;

constexpr std::uint64_t kDraws = 0x6f72646572;  // key of all draws
// Earlier entry of a micro-batch than in the given order, in micro-batches that have passed forward
// and that have left. Larger values keep more memory.
constexpr std::pair<int, int> kSlacks[] = {{0, 0}, {1, 0}, {1, 1}, {2, 2}};
// Factor over the best list schedule above which a try is not simulated.
constexpr double kWorthSimulating = 1.01;
// Random machines: number, relative standard deviation of node costs, and relative lateness of
// exchanges.
constexpr std::uint64_t kMachines = 3;
constexpr double kVariation = 0.1, kLateness = 0.2;
// Compute nodes to issue before a host node, and the number of following nodes searched for them.
constexpr int kComputesAhead = 4;
constexpr std::size_t kLooksAhead = 64;

sim::SimulatedStep step_of(const std::vector<RankPlan>& plans, const ImproveRequest& request) {
  return simulated_step(plans, request.costs, request.overheads);
}

// Mean step over some machines with slightly varied node times and occasional late peers. It
// rejects orders that are short only if everything is on time. A node varies equally in every
// order.
double varied_seconds(const std::vector<RankPlan>& plans, const ImproveRequest& request) {
  const sim::SimulatedStep steady = step_of(plans, request);
  double sum = 0;
  for (std::uint64_t machine = 0; machine < kMachines; ++machine) {
    sim::SimulatedStep varied = steady;
    varied.cost = [&steady, machine](int rank, int entry) {
      const schedule::Entry& at_entry = steady.graphs[at(rank)]->entries[at(entry)];
      const double drawn = base::normal(kDraws + 1 + machine, schedule::NodeHash()(at_entry.node));
      sim::Cost cost = steady.cost(rank, entry);
      cost.seconds *= schedule::is_meeting(at_entry) ? 1 + kLateness * std::abs(drawn)
                                                     : std::max(0.5, 1 + kVariation * drawn);
      return cost;
    };
    sum += sim::simulate(varied, request.contention).step_seconds();
  }
  return sum / static_cast<double>(kMachines);
}

std::int64_t most_kept(const std::vector<RankPlan>& plans, const schedule::Load& load) {
  std::int64_t most = 0;
  for (const RankPlan& plan : plans) {
    most = std::max(most, schedule::activation_mark(plan.training, plan.anatomy, load));
  }
  return most;
}

int micro_batches_in(const std::vector<RankPlan>& plans) {
  return plans.front().shape.micro_batches;
}

// Writes a found order as graphs. A host node is placed directly before its first user, after a few
// compute nodes. Nodes issued earlier run while the host waits, and that wait varies more on a
// machine than in simulation.
class OrderWriter {
 public:
  OrderWriter(const std::vector<RankPlan>& plans, int rank) : plan_(plans[at(rank)]) {}

  schedule::Graph write(const std::vector<int>& issued) {
    const std::vector<schedule::Entry>& entries = plan_.training.entries;
    for (const int entry : issued) {
      if (entries[at(entry)].lane == schedule::Lane::Host) {
        pending_.insert(entries[at(entry)].node);
      } else {
        add(entries[at(entry)].node);
      }
    }
    while (!pending_.empty()) add(take(*pending_.begin()));
    return schedule::write(queue_ahead(), plan_.anatomy, plan_.shape.micro_batches);
  }

 private:
  // Lanes keep their order; nodes independent of a host node are issued before it.
  schedule::NamedEntries queue_ahead() const {
    schedule::NamedEntries order;
    std::vector<bool> is_out(named_.size(), false);
    for (std::size_t i = 0; i < named_.size(); ++i) {
      if (is_out[i]) continue;
      if (lane_of(named_[i].node) == schedule::Lane::Host) hoist(i, is_out, order);
      order.push_back(named_[i]);
    }
    return order;
  }

  void hoist(std::size_t host, std::vector<bool>& is_out, schedule::NamedEntries& order) const {
    std::set<Node> behind{named_[host].node};  // nodes that stay behind it
    std::array<bool, schedule::kLanes> is_held{};
    int computes = 0;
    const std::size_t end = std::min(named_.size(), host + kLooksAhead);
    for (std::size_t i = host + 1; i < end && computes < kComputesAhead; ++i) {
      if (is_out[i]) continue;
      const Node& node = named_[i].node;
      const schedule::Lane lane = lane_of(node);
      const bool waits =
          std::ranges::any_of(schedule::required(plan_.anatomy,
                                                 node,
                                                 plan_.shape.micro_batches,
                                                 schedule::StepKind::Training),
                              [&](const Node& need) { return behind.contains(need); });
      bool& held = is_held[static_cast<std::size_t>(lane)];
      held = held || waits || lane == schedule::Lane::Host;
      if (held) {
        behind.insert(node);
        if (lane == schedule::Lane::Compute) return;
        continue;
      }
      is_out[i] = true;
      order.push_back(named_[i]);
      if (lane == schedule::Lane::Compute) ++computes;
    }
  }

  schedule::Lane lane_of(const Node& node) const { return schedule::lane_of(plan_.anatomy, node); }

  Node take(const Node& host) {
    const Node node = host;
    pending_.erase(node);
    return node;
  }

  void add(const Node& node) {
    if (!pending_.empty()) {
      for (const Node& need : schedule::required(plan_.anatomy,
                                                 node,
                                                 plan_.shape.micro_batches,
                                                 schedule::StepKind::Training)) {
        if (pending_.contains(need)) add(take(need));
      }
    }
    named_.push_back({.node = node, .waits = {}});
  }

  const RankPlan& plan_;
  std::set<Node> pending_;
  schedule::NamedEntries named_;
};

// Preferences of a rule, in parts of a micro-batch's path through the step: later micro-batches,
// input gradients, weight gradients; and earlier entry of micro-batches.
struct Taste {
  double later = 0, backward = 0, weights = 0;
  int forward_slack = 0, slack = 0;
};

constexpr Taste kTastes[] = {
    {.later = -1, .weights = -100},
    {.later = 1, .weights = -100},
    {.backward = 1, .weights = -100},
    {.backward = -1, .weights = -100},
    {.weights = -100},
    {.later = -1, .weights = 1},
    {.backward = 1, .weights = 1},
};

// Node class with one common preference: equal nodes of all micro-batches, except at the begin and
// end of a step, where neighbours differ.
Node alike(Node node, int micro_batches) {
  if (node.micro_batch == kNone) return node;
  constexpr int kApart = 2;
  const int from_end = micro_batches - node.micro_batch;
  if (node.micro_batch >= kApart && from_end > kApart) node.micro_batch = kApart;
  return node;
}

class Search {
 public:
  explicit Search(const ImproveRequest& request)
      : request_(request), given_(step_of(request.plans, request)), jobs_(request.plans, given_) {
    const int all = static_cast<int>(jobs_.jobs().size());
    std::map<Node, int> numbers;
    double sum = 0;
    for (int job = 0; job < all; ++job) {
      const Node kind = alike(jobs_.node_of(job), micro_batches_in(request.plans));
      kind_of_.push_back(numbers.try_emplace(kind, static_cast<int>(numbers.size())).first->second);
      whole_ = std::max(whole_, jobs_.tails()[at(job)]);
      sum += jobs_.jobs()[at(job)].seconds;
    }
    unit_ = sum / all;
    biases_.assign(numbers.size(), 0);
    result_.plans = request.plans;
    result_.given_seconds = sim::simulate(given_, request.contention).step_seconds();
    result_.found_seconds = result_.given_seconds;
    given_varied_ = varied_seconds(request.plans, request);
    result_.bound_seconds =
        std::max(order_bound(jobs_, given_),
                 sim::bounds_of(given_).beside(request.contention.beside_communication));
    result_.given_bytes = result_.found_bytes = most_kept(request.plans, request.load);
    result_.limit_bytes = request.memory_limit.value_or(result_.given_bytes + one_micro_batch());
  }

  Improvement run() {
    for (const auto& [forward_slack, slack] : kSlacks) {
      for (Taste taste : kTastes) {
        taste.forward_slack = forward_slack;
        taste.slack = slack;
        attempt(taste, biases_);
        if (is_over()) return result_;
      }
    }
    while (!is_over()) change_a_little();
    return result_;
  }

 private:
  bool is_over() {
    if (result_.tried >= request_.tries) return true;
    return request_.goes_on && !request_.goes_on(result_.tried);
  }

  // Largest memory that a stage keeps per micro-batch after its forward.
  std::int64_t one_micro_batch() const {
    std::int64_t most = 0;
    for (const RankPlan& plan : request_.plans) {
      schedule::Graph forward;
      for (const schedule::Entry& entry : plan.training.entries) {
        if (entry.node.micro_batch == 0 && entry.node.direction == Direction::F) {
          forward.entries.push_back({.node = entry.node, .lane = entry.lane, .waits = {}});
        }
      }
      most = std::max(most, schedule::activation_mark(forward, plan.anatomy, request_.load));
    }
    return most;
  }

  ListRule rule_of(const Taste& taste, const std::vector<double>& biases) const {
    ListRule rule{.urgency = {}, .forward_slack = taste.forward_slack, .slack = taste.slack};
    for (int job = 0; job < std::ssize(kind_of_); ++job) {
      const Node& node = jobs_.node_of(job);
      double urgency = jobs_.tails()[at(job)] + biases[at(kind_of_[at(job)])] * unit_;
      if (node.micro_batch != kNone) urgency += taste.later * node.micro_batch * whole_;
      if (node.direction == Direction::D) urgency += taste.backward * whole_;
      if (node.direction == Direction::W) urgency += taste.weights * whole_;
      rule.urgency.push_back(urgency);
    }
    return rule;
  }

  // True if the order is the shortest so far; then it is kept.
  bool attempt(const Taste& taste, const std::vector<double>& biases) {
    ++result_.tried;
    const ListOrder order = jobs_.run(rule_of(taste, biases));
    if (order.seconds > kWorthSimulating * best_listed_) return false;
    std::vector<RankPlan> plans = request_.plans;
    for (int rank = 0; rank < std::ssize(plans); ++rank) {
      plans[at(rank)].training = OrderWriter(request_.plans, rank).write(order.issued[at(rank)]);
    }
    const double varied = varied_seconds(plans, request_);
    if (varied >= best_varied_) return false;
    const std::int64_t bytes = most_kept(plans, request_.load);
    if (bytes > result_.limit_bytes) {
      if (varied < given_varied_) ++result_.over_limit;
      return false;
    }
    best_listed_ = std::min(best_listed_, order.seconds);
    best_varied_ = varied;
    best_ = taste;
    const double seconds =
        sim::simulate(step_of(plans, request_), request_.contention).step_seconds();
    if (varied >= given_varied_ || seconds >= result_.given_seconds) return true;
    result_.found_seconds = seconds;
    result_.found_bytes = bytes;
    result_.plans = std::move(plans);
    return true;
  }

  double draw(int i) const {
    return base::normal(kDraws, static_cast<std::uint64_t>(result_.tried) * 64 + at(i));
  }
  std::size_t draw_below(int i, std::size_t size) const {
    const double drawn =
        base::uniform(kDraws, static_cast<std::uint64_t>(result_.tried) * 64 + 32 + at(i));
    return std::min(size - 1, static_cast<std::size_t>(drawn * static_cast<double>(size)));
  }

  // Varies the best: a preference or two, and sometimes its taste.
  void change_a_little() {
    Taste taste = best_;
    std::vector<double> biases = biases_;
    if (result_.tried % 8 == 0) {
      taste.later += 0.2 * draw(0);
      taste.backward += 0.2 * draw(1);
    }
    const int changes = 1 + result_.tried % 4;
    for (int i = 0; i < changes; ++i) {
      biases[draw_below(i, biases.size())] += 3 * draw(2 + i);
    }
    if (attempt(taste, biases)) biases_ = std::move(biases);
  }

  const ImproveRequest& request_;
  const sim::SimulatedStep given_;
  const ListSchedule jobs_;
  std::vector<int> kind_of_;     // by job
  std::vector<double> biases_;   // by kind, in units of a mean node
  double unit_ = 0, whole_ = 0;  // seconds of a mean node, and of a micro-batch's longest path
  double best_listed_ = std::numeric_limits<double>::infinity();
  double best_varied_ = std::numeric_limits<double>::infinity();
  double given_varied_ = 0;
  Taste best_;
  Improvement result_;
};

}  // namespace

double Improvement::share_gone() const {
  const double above = given_seconds - bound_seconds;
  return above <= 0 ? 0 : (given_seconds - found_seconds) / above;
}

Improvement improve(const ImproveRequest& request) { return Search(request).run(); }

}  // namespace weft::plan
