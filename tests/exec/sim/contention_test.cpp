#include "weft/exec/sim/contention.h"

#include <gtest/gtest.h>

#include "tests/exec/sim/toy_support.h"

namespace weft::exec::sim {
namespace contention_test {

const std::string kBeside =
    "compute 0F0.attention\n"
    "ep 0F0.dispatch < 0F0.attention\n"
    "compute 1F0.attention\n";

TEST(Contention, ComputeBesideCommunicationIsSlower) {
  ToyStep toy({kBeside, kBeside},
              {{"0F0.attention", 1000}, {"1F0.attention", 1000}, {"0F0.dispatch", 500}});
  EXPECT_EQ(toy.run().step_ns, 2000);
  // The first 500 ns of 1000 run beside the exchange; slowing them down reduces that share.
  const Result slowed = simulate(toy.step(), {.beside_communication = 0.2});
  EXPECT_GT(slowed.step_ns, 2080);
  EXPECT_LT(slowed.step_ns, 2105);
}

TEST(Contention, CommunicationBesideComputeIsSlower) {
  ToyStep toy({kBeside, kBeside},
              {{"0F0.attention", 100}, {"1F0.attention", 1000}, {"0F0.dispatch", 2000}});
  EXPECT_EQ(toy.run().step_ns, 2100);
  // Half of it runs beside compute, or less as it slows down.
  const Result slowed = simulate(toy.step(), {.beside_compute = 0.2});
  EXPECT_GT(slowed.step_ns, 2260);
  EXPECT_LT(slowed.step_ns, 2305);
}

TEST(Contention, RanksThatShareACoreTakeTurns) {
  const std::string text = "compute 0F0.attention\n";
  ToyStep toy({text, text}, {{"0F0.attention", 1000}});
  EXPECT_EQ(simulate(toy.step(), {.cores = 2}).step_ns, 1000);
  EXPECT_EQ(simulate(toy.step(), {.cores = 1}).step_ns, 2000);
  EXPECT_EQ(simulate(toy.step(), {.cores = 4, .cores_of_rank = {4, 4}}).step_ns, 2000);
}

// Two ranks per core. One reaches the exchange and goes on with other work. The other arrives after
// that one's time slice plus its own 1000 ns, not after 2000 ns at half speed.
TEST(Contention, AnExchangeWaitsForARankThatWaitsForItsTurn) {
  const std::string exchange =
      "compute 0F0.attention\n"
      "ep 0F0.dispatch < 0F0.attention\n"
      "compute 0F0.experts < 0F0.dispatch\n";
  const std::string beside =
      "compute 0F0.attention\n"
      "ep 0F0.dispatch < 0F0.attention\n"
      "compute 1F0.attention\n"
      "compute 0F0.experts < 0F0.dispatch\n";
  const ToyStep::CostsNs costs{{"0F0.attention", 1000},
                               {"0F0.dispatch", 10000},
                               {"1F0.attention", 4000},
                               {"0F0.experts", 100}};
  const auto took_longer = [&](const std::string& text, double turn_ns) {
    ToyStep toy({text}, costs);
    const Contention half{.cores = 2, .cores_of_rank = {4}};
    Contention turns = half;
    turns.turn_seconds = turn_ns * 1e-9;
    return simulate(toy.step(), turns).step_ns - simulate(toy.step(), half).step_ns;
  };
  EXPECT_NEAR(took_longer(beside, 3000), 2000, 100);
  EXPECT_EQ(took_longer(beside, 900), 0) << "the turn was over before the exchange";
  EXPECT_EQ(took_longer(exchange, 3000), 0) << "who has nothing else to do leaves the core";
}

TEST(Contention, NoneIsTheStepAsItIs) {
  ToyStep toy({kBeside, kBeside}, {{"0F0.attention", 7}, {"0F0.dispatch", 11}});
  EXPECT_EQ(simulate(toy.step(), Contention{}).entries, toy.run().entries);
}

}  // namespace contention_test
}  // namespace weft::exec::sim
