// Zero bubble and DualPipeV: every turn once, in an order without deadlock.
#include "weft/schedule/builders/orders.h"

#include <gtest/gtest.h>

#include <map>

#include "weft/derive/pipeline.h"

namespace weft::schedule {
namespace orders_test {

PipelineShape shape(TurnOrder order, int pp, int rank, int micro_batches) {
  return {.pp = pp,
          .pp_rank = rank,
          .vpp = order == TurnOrder::DualPipeV ? 2 : 1,
          .micro_batches = micro_batches,
          .group = pp,
          .order = order};
}

// Seconds per turn.
struct Cost {
  double forward = 1, input = 1, weight = 1;
};

// Simulates a pipeline of turns: a round is one unit, which starts when all its inputs are ready.
class Clock {
 public:
  Clock(TurnOrder order, int pp, int micro_batches, const Cost& cost)
      : pipeline_{.pp = pp,
                  .vpp = order == TurnOrder::DualPipeV ? 2 : 1,
                  .placement = order == TurnOrder::DualPipeV ? derive::Placement::V
                                                             : derive::Placement::Ring},
        cost_(cost) {
    for (int rank = 0; rank < pp; ++rank) {
      const PipelineShape own = shape(order, pp, rank, micro_batches);
      rounds_.push_back(training_rounds(own));
      turns_of_.emplace_back(training_turns(own), anatomy_);
    }
  }

  // Seconds of the step; 0: deadlock.
  double run() {
    std::vector<std::size_t> next(rounds_.size());
    std::vector<double> now(rounds_.size());
    bool moves = true;
    while (moves) {
      moves = false;
      for (std::size_t rank = 0; rank < rounds_.size(); ++rank) {
        while (next[rank] < rounds_[rank].size() &&
               take(rank, rounds_[rank][next[rank]], now[rank])) {
          ++next[rank];
          moves = true;
        }
      }
    }
    for (std::size_t rank = 0; rank < rounds_.size(); ++rank) {
      if (next[rank] < rounds_[rank].size()) return 0;
    }
    return std::ranges::max(now);
  }

 private:
  int stage_of(std::size_t rank, const Turn& turn) const {
    return pipeline_.stages_of(static_cast<int>(rank))[static_cast<std::size_t>(turn.chunk)];
  }

  // Time at which a turn's input is ready; nullptr: not yet.
  const double* ready(int stage, const Turn& turn) const {
    static constexpr double kStart = 0;
    Direction of = turn.direction;
    int from = stage;
    if (of == Direction::F && --from < 0) return &kStart;
    if (of == Direction::W) of = Direction::D;
    if (turn.direction == Direction::D && ++from == pipeline_.stages()) {
      from = stage;
      of = Direction::F;
    }
    const auto found = over_.find({of, from, turn.micro_batch});
    return found == over_.end() ? nullptr : &found->second;
  }

  double seconds(std::size_t rank, const Turn& turn) const {
    const Node weight{.layer = 0,
                      .direction = Direction::W,
                      .micro_batch = turn.micro_batch,
                      .piece = Piece::Mlp};
    const bool waits = turns_of_[rank](weight, turn.chunk).direction == Direction::W;
    if (turn.direction == Direction::F) return cost_.forward;
    if (turn.direction == Direction::W) return cost_.weight;
    return waits ? cost_.input : cost_.input + cost_.weight;
  }

  bool take(std::size_t rank, const std::vector<Turn>& round, double& now) {
    double end = now;
    for (const Turn& turn : round) {
      const double* at = ready(stage_of(rank, turn), turn);
      if (at == nullptr) return false;
      end = std::max(end, *at);
    }
    for (const Turn& turn : round) end += seconds(rank, turn);
    for (const Turn& turn : round) {
      over_[{turn.direction, stage_of(rank, turn), turn.micro_batch}] = end;
    }
    now = end;
    return true;
  }

  derive::Pipeline pipeline_;
  Cost cost_;
  std::vector<std::vector<std::vector<Turn>>> rounds_;
  Anatomy anatomy_;  // no layers: no weight gradient stays
  std::vector<TurnOf> turns_of_;
  std::map<std::tuple<Direction, int, int>, double> over_;
};

class Orders : public ::testing::TestWithParam<TurnOrder> {};

TEST_P(Orders, HaveEveryTurnOnceAndEveryChunkInAscendingMicroBatches) {
  for (const int pp : {1, 2, 3, 4, 8}) {
    for (const int micro_batches : {1, 2, 3, 4, 5, 8, 20}) {
      for (int rank = 0; rank < pp; ++rank) {
        const PipelineShape own = shape(GetParam(), pp, rank, micro_batches);
        std::map<std::pair<Direction, int>, int> next, counts;
        for (const Turn& turn : training_turns(own)) {
          int& expected = next[{turn.direction, turn.chunk}];
          EXPECT_GE(turn.micro_batch, expected) << pp << " " << micro_batches << " " << rank;
          expected = turn.micro_batch + 1;
          counts[{turn.direction, turn.chunk}] += 1;
        }
        for (const auto& [turn, count] : counts) {
          if (turn.first == Direction::W) continue;
          EXPECT_EQ(count, micro_batches);
        }
        EXPECT_EQ(std::ssize(forward_turns(own)), micro_batches * own.vpp);
      }
    }
  }
}

TEST_P(Orders, NeverStandStill) {
  for (const int pp : {2, 3, 4, 8}) {
    for (const int micro_batches : {1, 2, 3, 4, 5, 8, 16, 20}) {
      EXPECT_GT(Clock(GetParam(), pp, micro_batches, {}).run(), 0) << pp << " " << micro_batches;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All,
                         Orders,
                         ::testing::Values(TurnOrder::ZeroBubble, TurnOrder::DualPipeV));

TEST(ZeroBubble, IsIdleForForwardAndInputLessWeight) {
  for (const Cost& cost : {Cost{}, Cost{1, 1.2, 0.8}, Cost{1, 1, 0.5}, Cost{1, 1.5, 0.7}}) {
    const double turn = cost.forward + cost.input + cost.weight;
    const auto idle = [&](TurnOrder order) { return Clock(order, 4, 8, cost).run() - 8 * turn; };
    EXPECT_NEAR(idle(TurnOrder::OneForwardOneBackward), 3 * turn, 1e-9);
    EXPECT_NEAR(idle(TurnOrder::ZeroBubble), 3 * (turn - 2 * cost.weight), 1e-9);
  }
}

TEST(ZeroBubble, HasNoMoreMicroBatchesInFlightThanRank0Of1F1B) {
  EXPECT_EQ(training_turns(shape(TurnOrder::ZeroBubble, 4, 0, 8)),
            training_turns(shape(TurnOrder::OneForwardOneBackward, 4, 0, 8)));
  for (int rank = 1; rank < 4; ++rank) {
    int in_flight = 0;
    for (const Turn& turn : training_turns(shape(TurnOrder::ZeroBubble, 4, rank, 8))) {
      if (turn.direction == Direction::F) ++in_flight;
      if (turn.direction == Direction::W) --in_flight;
      EXPECT_LE(in_flight, 4) << rank;
    }
  }
}

TEST(DualPipeV, IsIdleForLessThanZeroBubble) {
  const Cost half{0.5, 0.5, 0.5};  // two chunks
  EXPECT_LE(Clock(TurnOrder::DualPipeV, 4, 8, half).run(),
            Clock(TurnOrder::ZeroBubble, 4, 8, {}).run());
}

}  // namespace orders_test
}  // namespace weft::schedule
