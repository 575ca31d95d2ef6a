#include "weft/plan/price/pipeline_clock.h"

#include <algorithm>
#include <optional>

#include "weft/base/casts.h"
#include "weft/base/check.h"

namespace weft::plan {
namespace {

using schedule::Direction;
using schedule::Turn;

constexpr double kNotYet = -1;

class PipelineClock {
 public:
  explicit PipelineClock(const PipelineWork& work) : work_(work) {
    const auto stages = base::at(work.pipeline.stages());
    const auto micro_batches = base::at(work.shapes.front().micro_batches);
    forward_end_.assign(stages, std::vector(micro_batches, kNotYet));
    backward_end_ = forward_end_;
    for (const schedule::PipelineShape& shape : work.shapes) {
      Rank& rank = ranks_.emplace_back();
      rank.rounds = schedule::training_rounds(shape);
      rank.stages = work.pipeline.stages_of(shape.pp_rank);
      rank.put_off.assign(rank.stages.size() * micro_batches, 0);
      rank.merged.resize(rank.stages.size() * rank.stages.size());
      for (const std::vector<Turn>& round : rank.rounds) {
        for (const Turn& turn : round) {
          if (turn.direction == Direction::W) rank.put_off[place(turn)] = 1;
        }
      }
    }
    clocks_.resize(ranks_.size());
  }

  PipelineTime run() {
    // A rank advances until it needs another's result; then the next rank advances.
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        while (advance(r)) moved = true;
      }
    }
    PipelineTime time{.seconds = 0, .ranks = std::move(clocks_)};
    for (const Rank& rank : ranks_) {
      CHECK(rank.next == rank.rounds.size(), "a pipeline stands still");
      time.seconds = std::max(time.seconds, rank.free);
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const RankClock& rank = time.ranks[r];
      time.ranks[r].idle = std::max(0.0, time.seconds - rank.work.total() - rank.pp);
    }
    return time;
  }

 private:
  struct Rank {
    std::vector<std::vector<Turn>> rounds;
    std::vector<int> stages;  // by chunk
    // By chunk and micro-batch: true if its weight gradients have a turn of their own.
    std::vector<char> put_off;
    std::vector<std::optional<PlainTime>> merged;  // by chunks of the forward and the backward
    std::size_t next = 0;                          // index of the round
    std::size_t turn = 0;                          // index in a round of consecutive turns
    double free = 0;
  };

  int stage_of(const Rank& rank, const Turn& turn) const {
    return rank.stages[base::at(turn.chunk)];
  }

  // Time of a turn's input; nullopt: not known yet.
  std::optional<double> ready(const Rank& rank, const Turn& turn) const {
    const int stage = stage_of(rank, turn), last = work_.pipeline.stages() - 1;
    const auto i = base::at(turn.micro_batch);
    const auto from = [&](const std::vector<std::vector<double>>& ends, int other) {
      const double end = ends[base::at(other)][i];
      if (end == kNotYet) return std::optional<double>();
      const bool travels = work_.pipeline.rank_of(other) != work_.pipeline.rank_of(stage);
      return std::optional(end + (travels ? work_.send_seconds : 0));
    };
    if (turn.direction == Direction::F) {
      return stage == 0 ? std::optional(0.0) : from(forward_end_, stage - 1);
    }
    if (turn.direction == Direction::W) return from(backward_end_, stage);
    return stage == last ? from(forward_end_, stage) : from(backward_end_, stage + 1);
  }

  // Merged times are equal for all micro-batches: each pair of chunks is computed once.
  const PlainTime& merged(Rank& rank, const Turn& forward, const Turn& backward) const {
    std::optional<PlainTime>& known =
        rank.merged[base::at(forward.chunk) * rank.stages.size() + base::at(backward.chunk)];
    if (!known) known = work_.merged(stage_of(rank, forward), stage_of(rank, backward));
    return *known;
  }

  PlainTime alone(const Rank& rank, const Turn& turn) const {
    const StageTime& stage = work_.stages[base::at(stage_of(rank, turn))];
    if (turn.direction == Direction::F) return stage.forward;
    if (turn.direction == Direction::W) return {.backward = stage.weights};
    PlainTime time = stage.backward;
    if (rank.put_off[place(turn)] != 0) time.backward -= stage.weights;
    return time;
  }

  std::size_t place(const Turn& turn) const {
    return base::at(turn.chunk) * base::at(work_.shapes.front().micro_batches) +
           base::at(turn.micro_batch);
  }

  void note_end(const Rank& rank, const Turn& turn, double end) {
    const auto stage = base::at(stage_of(rank, turn)), i = base::at(turn.micro_batch);
    if (turn.direction == Direction::F) forward_end_[stage][i] = end;
    if (turn.direction == Direction::D) backward_end_[stage][i] = end;
  }

  bool sends(const Rank& rank, const Turn& turn) const {
    const int stage = stage_of(rank, turn), pp_rank = work_.pipeline.rank_of(stage);
    if (turn.direction == Direction::W) return false;
    const int next = turn.direction == Direction::F ? stage + 1 : stage - 1;
    if (next < 0 || next >= work_.pipeline.stages()) return false;
    return work_.pipeline.rank_of(next) != pp_rank;
  }

  // Advances a rank by one round or turn; false if it must wait.
  bool advance(std::size_t r) {
    Rank& rank = ranks_[r];
    if (rank.next == rank.rounds.size()) return false;
    const std::vector<Turn>& round = rank.rounds[rank.next];
    const Turn& first = round[rank.turn];
    const bool merges = work_.merged && round.size() == 2 && rank.turn == 0 &&
                        round[0].direction == Direction::F && round[1].direction == Direction::D;
    std::optional<double> start = ready(rank, first);
    if (merges && start) {
      const std::optional<double> other = ready(rank, round[1]);
      start = other ? std::optional(std::max(*start, *other)) : std::nullopt;
    }
    if (!start) return false;
    const PlainTime time = merges ? merged(rank, round[0], round[1]) : alone(rank, first);
    RankClock& clock = clocks_[r];
    const double begin = std::max(rank.free, *start);
    if (work_.sends_beside) clock.pp += std::min(begin - rank.free, work_.send_seconds);
    clock.work += time;
    const double end = begin + time.total();
    rank.free = end;
    for (std::size_t i = rank.turn; i < (merges ? 2 : rank.turn + 1); ++i) {
      note_end(rank, round[i], end);
      if (work_.sends_beside || !sends(rank, round[i])) continue;
      rank.free += work_.send_seconds;
      clock.pp += work_.send_seconds;
    }
    rank.turn += merges ? 2 : 1;
    if (rank.turn >= round.size()) {
      ++rank.next;
      rank.turn = 0;
    }
    return true;
  }

  const PipelineWork& work_;
  std::vector<Rank> ranks_;
  std::vector<RankClock> clocks_;
  std::vector<std::vector<double>> forward_end_, backward_end_;  // by stage and micro-batch
};

}  // namespace

const RankClock& PipelineTime::longest() const {
  return *std::ranges::max_element(ranks, {}, [](const RankClock& rank) {
    return rank.work.total() + rank.pp;
  });
}

PipelineTime run_pipeline(const PipelineWork& work) { return PipelineClock(work).run(); }

}  // namespace weft::plan
