#include "weft/plan/cost/order_bound.h"

#include <algorithm>
#include <limits>
#include <map>

#include "weft/base/casts.h"

namespace weft::plan {
namespace {

using base::at;

// Job on a lane: longest path to its start, duration, longest path from its end.
struct OnLane {
  double before = 0, seconds = 0, after = 0;
};

std::vector<int> in_order_of_needs(const std::vector<ListSchedule::Job>& jobs) {
  std::vector<int> open, order;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    open.push_back(jobs[i].needs);
    if (jobs[i].needs == 0) order.push_back(static_cast<int>(i));
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const int follower : jobs[at(order[i])].followers) {
      if (--open[at(follower)] == 0) order.push_back(follower);
    }
  }
  return order;
}

// Largest bound over the sets of jobs that share a least path to their start.
double bound_of_lane(std::vector<OnLane> jobs) {
  std::ranges::sort(jobs, std::ranges::greater(), &OnLane::before);
  double most = 0, sum = 0, after = std::numeric_limits<double>::infinity();
  for (const OnLane& job : jobs) {
    sum += job.seconds;
    after = std::min(after, job.after);
    most = std::max(most, job.before + sum + after);
  }
  return most;
}

}  // namespace

double order_bound(const ListSchedule& jobs, const exec::sim::SimulatedStep& step) {
  const std::vector<ListSchedule::Job>& all = jobs.jobs();
  const std::vector<int> order = in_order_of_needs(all);
  std::vector<double> before(all.size(), 0), after(all.size(), 0);
  for (const int job : order) {
    for (const int follower : all[at(job)].followers) {
      before[at(follower)] = std::max(before[at(follower)], before[at(job)] + all[at(job)].seconds);
    }
  }
  for (auto job = order.rbegin(); job != order.rend(); ++job) {
    for (const int follower : all[at(*job)].followers) {
      after[at(*job)] = std::max(after[at(*job)], after[at(follower)] + all[at(follower)].seconds);
    }
  }
  std::map<std::pair<int, schedule::Lane>, std::vector<OnLane>> lanes;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const auto& [rank, entry] : all[i].members) {
      const schedule::Lane lane = step.graphs[at(rank)]->entries[at(entry)].lane;
      // The host is blocked by its waits, and lanes without work by nothing.
      if (lane == schedule::Lane::Host) continue;
      lanes[{rank, lane}].push_back(
          {.before = before[i], .seconds = all[i].seconds, .after = after[i]});
    }
  }
  double most = 0;
  for (auto& [lane, on_lane] : lanes) most = std::max(most, bound_of_lane(std::move(on_lane)));
  return most;
}

}  // namespace weft::plan
