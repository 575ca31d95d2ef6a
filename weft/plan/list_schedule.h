// List scheduling: an order of a step found by a rule instead of written by a builder. Whenever a
// lane is free it takes, of the nodes whose needs are over, the most urgent one.
//
// What keeps the bits and the meaning is kept: every node starts after what the anatomy requires of
// it, which includes the order of the gradients of a weight. Memory is held by gates for what
// computes. In the given order the compute lane turns to a micro-batch when so many others have
// gone forward through the stage, and so many have left it; here it does at most `forward_slack`
// and `slack` of them sooner. A step that the given order brings to its end comes to its end under
// every rule: the first thing that it did and that never happens here would need nothing but what
// happened before it, there and here.
#pragma once

#include <vector>

#include "weft/exec/sim/operations.h"
#include "weft/exec/sim/step.h"
#include "weft/schedule/plan.h"

namespace weft::plan {

struct ListRule {
  std::vector<double> urgency;  // of each job; the greatest goes first
  int forward_slack = 0;
  int slack = 0;
};

struct ListOrder {
  std::vector<std::vector<int>> issued;  // by pipeline rank: entries of its given graph, in order
  double seconds = 0;  // without what a host that waits does to what is issued behind it
};

class ListSchedule {
 public:
  // What is done at once: a node, or an operation in which pipeline ranks meet.
  struct Job {
    std::vector<std::pair<int, int>> members;  // pipeline rank and entry
    double seconds = 0;
    std::vector<int> followers;
    int needs = 0;
  };

  // `plans` and `step`, whose graphs are theirs, outlive it.
  ListSchedule(const std::vector<schedule::RankPlan>& plans, const exec::sim::SimulatedStep& step);

  const std::vector<Job>& jobs() const { return jobs_; }
  const schedule::Node& node_of(int job) const;
  // Seconds from the start of a job to the end of its micro-batch's last input gradient, by the
  // longest way; a weight gradient, and what is of no micro-batch: its own.
  const std::vector<double>& tails() const { return tails_; }

  ListOrder run(const ListRule& rule) const;

 private:
  // A micro-batch in a chunk of a pipeline rank.
  struct Visit {
    int nodes = 0, forward_nodes = 0;
    // Of others, before it enters in the given order.
    int forwards = 0, leavings = 0;
  };
  struct Stage {
    std::vector<int>
        visit_of;  // by entry; kNone: of no micro-batch, or on another lane than compute
    std::vector<Visit> visits;  // in the order in which they enter
  };
  class Run;

  void make_jobs(const std::vector<schedule::RankPlan>& plans,
                 const exec::sim::SimulatedStep& step);
  void link_jobs(const std::vector<schedule::RankPlan>& plans);
  void find_visits(const std::vector<schedule::RankPlan>& plans);
  void find_tails();

  std::vector<const schedule::Graph*> graphs_;
  std::vector<Job> jobs_;
  std::vector<std::vector<int>> job_of_;  // by pipeline rank and entry
  std::vector<Stage> stages_;
  std::vector<double> tails_;
};

}  // namespace weft::plan
