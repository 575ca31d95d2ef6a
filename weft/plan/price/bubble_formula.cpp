#include "weft/plan/price/bubble_formula.h"

#include <algorithm>
#include <numeric>

#include "weft/base/casts.h"

namespace weft::plan {
namespace {

using base::number;

// Earliest end of a rank, the larger of two bounds. First: its first input, all its work, and the
// return of its last gradient to the first stage. Second: the arrival of the first gradient, the
// remaining work, and the return of the last gradient.
class EarliestEnd {
 public:
  explicit EarliestEnd(const PipelineLoad& load)
      : load_(load), pp_(load.pipeline.pp), vpp_(load.pipeline.vpp), reach_(seconds_to_the_end()) {}

  double of_all() const {
    double latest = 0;
    for (int rank = 0; rank < pp_; ++rank) latest = std::max(latest, of_rank(rank));
    return latest;
  }

 private:
  double sum(int begin, int end, double StageSeconds::*part) const {
    double seconds = 0;
    for (int s = begin; s < end; ++s) seconds += load_.stages[base::at(s)].*part;
    return seconds;
  }

  // Time for the first micro-batch to pass all stages. A rank takes its next chunk when a group of
  // micro-batches has left the previous one.
  double seconds_to_the_end() const {
    const double group = std::min(load_.micro_batches, number(pp_));
    double seconds = 0;
    for (int chunk = 0; chunk < vpp_; ++chunk) {
      const int begin = chunk * pp_, end = begin + pp_;
      double slowest = 0;
      for (int s = begin; s < end; ++s) {
        slowest = std::max(slowest, load_.stages[base::at(s)].forward);
      }
      const double all = sum(begin, end, &StageSeconds::forward);
      seconds += chunk + 1 < vpp_ ? std::max(all, group * slowest) : all;
    }
    return seconds;
  }

  // Time of a rank's forwards before its first backward, in turns of one chunk.
  double warm_up(int rank) const {
    const int later = pp_ - rank - 1;
    const int turns = vpp_ == 1 ? later + 1 : 2 * later + (vpp_ - 1) * pp_ + 1;
    return std::min(load_.micro_batches * number(vpp_), number(turns));
  }

  double of_rank(int rank) const {
    const double work = load_.work[base::at(rank)];
    const double back = sum(0, rank, &StageSeconds::backward);
    const double begins = sum(0, rank, &StageSeconds::forward);
    double forward = 0;
    for (const int stage : load_.pipeline.stages_of(rank)) {
      forward += load_.stages[base::at(stage)].forward;
    }
    const int own = (vpp_ - 1) * pp_ + rank;
    const double gradient = reach_ + sum(own + 1, pp_ * vpp_, &StageSeconds::backward);
    const double done = warm_up(rank) * forward / number(vpp_);
    return back + work + std::max(begins, gradient - done);
  }

  const PipelineLoad& load_;
  const int pp_, vpp_;
  const double reach_;
};

}  // namespace

// Bubble with chunks: ranks also wait between chunks, for the others' turns. Each group of
// micro-batches after the first gives a busier rank work to fill these waits.
double bubble_by_formula(const PipelineLoad& load) {
  const double most = std::ranges::max(load.work), turn = std::ranges::max(load.turns);
  const double all = std::accumulate(load.turns.begin(), load.turns.end(), 0.0);
  const double others = (all - turn) / number(load.pipeline.vpp);
  if (load.pipeline.placement != derive::Placement::Ring) return others;
  const double least = std::max(0.0, EarliestEnd(load).of_all() - most);
  if (load.pipeline.vpp == 1) return least;
  const double first_group = std::min(1.0, number(load.pipeline.pp) / load.micro_batches);
  return std::max(least, least + (others - least) * first_group);
}

}  // namespace weft::plan
