// One run of the list scheduler.
#include <algorithm>
#include <queue>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/plan/order/list_schedule.h"
#include "weft/schedule/dependencies.h"

namespace weft::plan {
namespace {

using base::at;
using schedule::kLanes;
using schedule::kNone;

}  // namespace

class ListSchedule::Run {
 public:
  Run(const ListSchedule& all, const ListRule& rule)
      : all_(all),
        rule_(rule),
        ready_(all.stages_.size() * kLanes),
        holds_(all.stages_.size() * kLanes, false),
        doors_(all.stages_.size()) {
    for (const Job& job : all.jobs_) needs_.push_back(job.needs);
    order_.issued.resize(all.stages_.size());
    for (std::size_t i = 0; i < doors_.size(); ++i) {
      for (const Visit& visit : all.stages_[i].visits) {
        doors_[i].nodes_left.push_back(visit.nodes);
        doors_[i].forward_left.push_back(visit.forward_nodes);
      }
      doors_[i].waiting.resize(all.stages_[i].visits.size());
    }
  }

  ListOrder run() {
    for (std::size_t stage = 0; stage < doors_.size(); ++stage) let_in(static_cast<int>(stage));
    for (int job = 0; job < std::ssize(needs_); ++job) {
      if (needs_[at(job)] == 0) offer(job);
    }
    start_all();
    while (!endings_.empty()) {
      now_ = endings_.top().seconds;
      while (!endings_.empty() && endings_.top().seconds <= now_) {
        const int job = endings_.top().job;
        endings_.pop();
        end(job);
      }
      start_all();
    }
    CHECK(started_ == all_.jobs_.size(), "{} of {} jobs ran", started_, all_.jobs_.size());
    order_.seconds = now_;
    return std::move(order_);
  }

 private:
  struct Candidate {
    double urgency = 0;
    int job = 0;

    // Ties go to the earlier one in the given order.
    bool operator<(const Candidate& other) const {
      return urgency != other.urgency ? urgency < other.urgency : job > other.job;
    }
  };

  struct Ending {
    double seconds = 0;
    int job = 0;

    bool operator>(const Ending& other) const {
      return seconds != other.seconds ? seconds > other.seconds : job > other.job;
    }
  };

  // Gate of a stage: visits that may begin, and jobs that wait for it.
  struct Door {
    std::size_t allowed = 0;  // number of visits, in order of entry
    int forward = 0, left = 0;
    std::vector<int> nodes_left, forward_left;  // by visit: jobs not started
    std::vector<std::vector<int>> waiting;      // by visit: jobs
  };

  std::size_t lane_of(const std::pair<int, int>& member) const {
    const auto& [rank, entry] = member;
    return at(rank) * kLanes +
           static_cast<std::size_t>(all_.graphs_[at(rank)]->entries[at(entry)].lane);
  }

  // Adds a ready job to the candidates of its lane, or before a closed gate.
  void offer(int job) {
    const Job& what = all_.jobs_[at(job)];
    for (const auto& [rank, entry] : what.members) {
      const int visit = all_.stages_[at(rank)].visit_of[at(entry)];
      Door& door = doors_[at(rank)];
      if (visit == kNone || at(visit) < door.allowed) continue;
      door.waiting[at(visit)].push_back(job);
      return;
    }
    const Candidate candidate{.urgency = rule_.urgency[at(job)], .job = job};
    if (what.members.size() > 1) {
      joint_.push_back(candidate);
      std::ranges::sort(joint_, [](const Candidate& a, const Candidate& b) { return b < a; });
    } else {
      ready_[lane_of(what.members.front())].push(candidate);
    }
  }

  void let_in(int stage) {
    Door& door = doors_[at(stage)];
    const std::vector<Visit>& visits = all_.stages_[at(stage)].visits;
    while (door.allowed < visits.size() &&
           door.left + rule_.slack >= visits[door.allowed].leavings &&
           door.forward + rule_.forward_slack >= visits[door.allowed].forwards) {
      const std::vector<int> waiting = std::move(door.waiting[door.allowed]);
      ++door.allowed;
      for (const int job : waiting) offer(job);
    }
  }

  void start_all() {
    bool any = true;
    while (any) {
      any = start_joint();
      for (std::size_t lane = 0; lane < ready_.size(); ++lane) {
        if (holds_[lane] || ready_[lane].empty()) continue;
        const int job = ready_[lane].top().job;
        ready_[lane].pop();
        start(job);
        any = true;
      }
    }
  }

  bool start_joint() {
    bool any = false;
    for (std::size_t i = 0; i < joint_.size();) {
      const int job = joint_[i].job;
      const auto& members = all_.jobs_[at(job)].members;
      const bool is_free = std::ranges::none_of(members, [&](const auto& member) {
        return holds_[lane_of(member)];
      });
      if (!is_free) {
        ++i;
        continue;
      }
      joint_.erase(joint_.begin() + static_cast<std::ptrdiff_t>(i));
      start(job);
      any = true;
    }
    return any;
  }

  void start(int job) {
    ++started_;
    const Job& what = all_.jobs_[at(job)];
    for (const auto& member : what.members) {
      const auto& [rank, entry] = member;
      holds_[lane_of(member)] = true;
      order_.issued[at(rank)].push_back(entry);
      const int visit = all_.stages_[at(rank)].visit_of[at(entry)];
      if (visit == kNone) continue;
      Door& door = doors_[at(rank)];
      const bool is_forward =
          all_.graphs_[at(rank)]->entries[at(entry)].node.direction == schedule::Direction::F;
      const bool is_through = is_forward && --door.forward_left[at(visit)] == 0;
      const bool has_left = --door.nodes_left[at(visit)] == 0;
      door.forward += is_through ? 1 : 0;
      door.left += has_left ? 1 : 0;
      if (is_through || has_left) let_in(rank);
    }
    endings_.push({.seconds = now_ + what.seconds, .job = job});
  }

  void end(int job) {
    const Job& what = all_.jobs_[at(job)];
    for (const auto& member : what.members) holds_[lane_of(member)] = false;
    for (const int follower : what.followers) {
      if (--needs_[at(follower)] == 0) offer(follower);
    }
  }

  const ListSchedule& all_;
  const ListRule& rule_;
  std::vector<int> needs_;
  std::vector<std::priority_queue<Candidate>> ready_;  // by stage and lane
  std::vector<bool> holds_;                            // by stage and lane: true while a job runs
  std::vector<Candidate> joint_;                       // jobs of several stages, most urgent first
  std::vector<Door> doors_;                            // by stage
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> endings_;
  double now_ = 0;
  std::size_t started_ = 0;
  ListOrder order_;
};

ListOrder ListSchedule::run(const ListRule& rule) const { return Run(*this, rule).run(); }

}  // namespace weft::plan
