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
  // The first 500 ns of 1000 are beside the exchange, until they take longer and less of them is.
  const Result slowed = simulate(toy.step(), {.beside_communication = 0.2});
  EXPECT_GT(slowed.step_ns, 2080);
  EXPECT_LT(slowed.step_ns, 2105);
}

TEST(Contention, CommunicationBesideComputeIsSlower) {
  ToyStep toy({kBeside, kBeside},
              {{"0F0.attention", 100}, {"1F0.attention", 1000}, {"0F0.dispatch", 2000}});
  EXPECT_EQ(toy.run().step_ns, 2100);
  // Half of it is beside compute, or less as it takes longer.
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

// Rank 0 comes back from an exchange while rank 1, which has no more to do with it, computes.
TEST(Contention, WhatWaitedWaitsForItsTurnOnACoreThatOthersHave) {
  const std::string waits = "ep 0F0.dispatch\ncompute 0F0.experts < 0F0.dispatch\n";
  const std::string works = "ep 0F0.dispatch\ncompute 1F0.attention\ncompute 1F0.route\n";
  ToyStep toy({waits, works},
              {{"0F0.dispatch", 1000},
               {"0F0.experts", 1000},
               {"1F0.attention", 2000},
               {"1F0.route", 4000}});
  const auto waited = [&](double cores) {
    const Contention fluid{.cores = cores};
    Contention turns = fluid;
    turns.turn_seconds = 300e-9;
    return simulate(toy.step(), turns).entries[0][1].end_ns -
           simulate(toy.step(), fluid).entries[0][1].end_ns;
  };
  EXPECT_EQ(waited(2), 0) << "each has a core";
  EXPECT_NEAR(waited(1), 300, 30);
  // What goes on from node to node keeps its core.
  const Contention turns{.cores = 1, .turn_seconds = 300e-9};
  const std::vector<Interval> alone = simulate(toy.step(), turns).entries[1];
  EXPECT_EQ(alone[2].begin_ns, alone[1].end_ns);
  EXPECT_EQ(alone[1].begin_ns, 0);
}

TEST(Contention, NoneIsTheStepAsItIs) {
  ToyStep toy({kBeside, kBeside}, {{"0F0.attention", 7}, {"0F0.dispatch", 11}});
  EXPECT_EQ(simulate(toy.step(), Contention{}).entries, toy.run().entries);
}

}  // namespace contention_test
}  // namespace weft::exec::sim
