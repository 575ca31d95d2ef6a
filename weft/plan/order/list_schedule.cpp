#include "weft/plan/order/list_schedule.h"

#include <algorithm>
#include <map>

#include "weft/base/casts.h"
#include "weft/schedule/anatomy.h"
#include "weft/schedule/dependencies.h"
#include "weft/schedule/node_index.h"

namespace weft::plan {
namespace {

using base::at;
using schedule::Direction;
using schedule::Entry;
using schedule::kNone;
using schedule::Node;
using schedule::RankPlan;

}  // namespace

ListSchedule::ListSchedule(const std::vector<RankPlan>& plans, const exec::sim::SimulatedStep& step)
    : graphs_(step.graphs) {
  make_jobs(plans, step);
  link_jobs(plans);
  find_visits(plans);
  find_tails();
}

const Node& ListSchedule::node_of(int job) const {
  const auto& [rank, entry] = jobs_[at(job)].members.front();
  return graphs_[at(rank)]->entries[at(entry)].node;
}

void ListSchedule::make_jobs(const std::vector<RankPlan>& plans,
                             const exec::sim::SimulatedStep& step) {
  const exec::sim::Operations operations(step);
  std::map<int, int> job_of_operation;
  for (int rank = 0; rank < std::ssize(plans); ++rank) {
    const int entries = static_cast<int>(graphs_[at(rank)]->entries.size());
    std::vector<int>& own = job_of_.emplace_back();
    for (int entry = 0; entry < entries; ++entry) {
      const int next = static_cast<int>(jobs_.size());
      const int operation = operations.of(rank, entry);
      const int job =
          operation == kNone ? next : job_of_operation.try_emplace(operation, next).first->second;
      if (job == next) jobs_.emplace_back();
      jobs_[at(job)].members.emplace_back(rank, entry);
      jobs_[at(job)].seconds = std::max(jobs_[at(job)].seconds, step.cost(rank, entry).seconds);
      own.push_back(job);
    }
  }
}

void ListSchedule::link_jobs(const std::vector<RankPlan>& plans) {
  for (int rank = 0; rank < std::ssize(plans); ++rank) {
    const RankPlan& plan = plans[at(rank)];
    const std::vector<Entry>& entries = graphs_[at(rank)]->entries;
    schedule::NodeIndex index;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      index.add(entries[i].node, static_cast<int>(i));
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const int job = job_of_[at(rank)][i];
      for (const Node& need : schedule::required(plan.anatomy,
                                                 entries[i].node,
                                                 plan.shape.micro_batches,
                                                 schedule::StepKind::Training)) {
        const int before = job_of_[at(rank)][at(index.find(need).value())];
        jobs_[at(before)].followers.push_back(job);
        ++jobs_[at(job)].needs;
      }
    }
  }
}

void ListSchedule::find_visits(const std::vector<RankPlan>& plans) {
  for (int rank = 0; rank < std::ssize(plans); ++rank) {
    const std::vector<Entry>& entries = graphs_[at(rank)]->entries;
    Stage& stage = stages_.emplace_back();
    std::map<std::pair<int, int>, int> visit_at;  // by chunk and micro-batch
    for (const Entry& entry : entries) {
      if (entry.node.micro_batch == kNone || entry.lane != schedule::Lane::Compute) {
        stage.visit_of.push_back(kNone);
        continue;
      }
      const int chunk = schedule::chunk_of(plans[at(rank)].anatomy, entry.node).index;
      const auto [found, is_new] = visit_at.try_emplace({chunk, entry.node.micro_batch},
                                                        static_cast<int>(stage.visits.size()));
      if (is_new) stage.visits.emplace_back();
      stage.visit_of.push_back(found->second);
      ++stage.visits[at(found->second)].nodes;
      if (entry.node.direction == Direction::F) ++stage.visits[at(found->second)].forward_nodes;
    }
    std::vector<int> seen(stage.visits.size(), 0), seen_forward(stage.visits.size(), 0);
    int left = 0, forward = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (stage.visit_of[i] == kNone) continue;
      const std::size_t number = at(stage.visit_of[i]);
      Visit& visit = stage.visits[number];
      if (seen[number]++ == 0) {
        visit.forwards = forward;
        visit.leavings = left;
      }
      if (seen[number] == visit.nodes) ++left;
      if (entries[i].node.direction != Direction::F) continue;
      if (++seen_forward[number] == visit.forward_nodes) ++forward;
    }
  }
}

// Walks jobs in reverse topological order.
void ListSchedule::find_tails() {
  tails_.assign(jobs_.size(), 0);
  std::vector<int> open(jobs_.size());
  std::vector<int> order;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    open[i] = jobs_[i].needs;
    if (open[i] == 0) order.push_back(static_cast<int>(i));
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const int follower : jobs_[at(order[i])].followers) {
      if (--open[at(follower)] == 0) order.push_back(follower);
    }
  }
  for (auto job = order.rbegin(); job != order.rend(); ++job) {
    const Node& node = node_of(*job);
    double rest = 0;
    for (const int follower : jobs_[at(*job)].followers) {
      const Node& next = node_of(follower);
      const bool is_on_the_way =
          next.micro_batch == node.micro_batch && next.direction != Direction::W;
      if (is_on_the_way && node.direction != Direction::W && node.micro_batch != kNone) {
        rest = std::max(rest, tails_[at(follower)]);
      }
    }
    tails_[at(*job)] = jobs_[at(*job)].seconds + rest;
  }
}

}  // namespace weft::plan
