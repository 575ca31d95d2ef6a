// List scheduling: an order of a step by a priority rule. A free lane takes the most urgent ready
// node.
//
// Bits and meaning are kept: every node starts after its requirements in the anatomy, including the
// order of a weight's gradients. Gates limit the memory of compute. In the given order some
// micro-batches have passed the stage forward, and some have left it, before the compute lane
// enters another. A rule may enter at most `forward_slack` and `slack` of them earlier.
//
// A step that completes in the given order completes under every rule. Proof: the given order's
// first node that never ran here would need only nodes before it, which ran here too.
#pragma once

#include <vector>

#include "weft/exec/sim/operations.h"
#include "weft/exec/sim/step.h"
#include "weft/schedule/plan.h"

namespace weft::plan {

struct ListRule {
  std::vector<double> urgency;  // per job; the largest goes first
  int forward_slack = 0;
  int slack = 0;
};

struct ListOrder {
  std::vector<std::vector<int>> issued;  // by pipeline rank: entries of its given graph in order
  double seconds = 0;                    // without the effect of a waiting host on later issues
};

class ListSchedule {
 public:
  // Unit of scheduling: a node, or an operation in which pipeline ranks meet.
  struct Job {
    std::vector<std::pair<int, int>> members;  // pipeline rank and entry
    double seconds = 0;
    std::vector<int> followers;
    int needs = 0;
  };

  // `plans` and `step`, which has their graphs, must outlive it.
  ListSchedule(const std::vector<schedule::RankPlan>& plans, const exec::sim::SimulatedStep& step);

  const std::vector<Job>& jobs() const { return jobs_; }
  const schedule::Node& node_of(int job) const;
  // Longest path in seconds from the start of a job to the end of its micro-batch's last input
  // gradient. For a weight gradient, or a node without a micro-batch: its own duration.
  const std::vector<double>& tails() const { return tails_; }

  ListOrder run(const ListRule& rule) const;

 private:
  // Micro-batch in a chunk of a pipeline rank.
  struct Visit {
    int nodes = 0, forward_nodes = 0;
    // Other micro-batches before it enters in the given order.
    int forwards = 0, leavings = 0;
  };
  struct Stage {
    std::vector<int> visit_of;  // by entry; kNone: no micro-batch, or not on the compute lane
    std::vector<Visit> visits;  // in order of entry
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
