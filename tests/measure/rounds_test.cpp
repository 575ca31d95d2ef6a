#include "weft/measure/runs/rounds.h"

#include <gtest/gtest.h>

#include <string>

namespace weft::measure {
namespace rounds_test {

TEST(Rounds, MeasuresCasesInTurnAndLeavesOutTheWarmUp) {
  std::string order, progress;
  Rounds rounds({.warm_up = 1, .rounds = 3, .progress = [&](int done, int of) {
                   progress += std::to_string(done) + "/" + std::to_string(of) + " ";
                 }});
  double next = 100;
  const Samples& a = rounds.add([&] {
    order += 'A';
    return next--;
  });
  const Samples& b = rounds.add([&] {
    order += 'B';
    return 1.0;
  });
  rounds.run();
  EXPECT_EQ(order, "ABABABAB");
  EXPECT_EQ(progress, "1/8 2/8 3/8 4/8 5/8 6/8 7/8 8/8 ");
  EXPECT_EQ(a.values, (std::vector<double>{99, 98, 97}));
  EXPECT_EQ(a.median(), 98);
  EXPECT_EQ(a.least(), 97);
  EXPECT_EQ(a.most(), 99);
  EXPECT_EQ(b.values.size(), 3u);
}

// Clock that only the work moves.
double now = 0;
double fake_clock() { return now; }

TEST(Rounds, TimesWorkByTheGivenClock) {
  Rounds rounds({.rounds = 4});
  double taken = 1;
  const Samples& slow = rounds.time([&] { now += 2 * taken; }, fake_clock);
  const Samples& fast = rounds.time([&] { now += taken++; }, fake_clock);
  rounds.run();
  EXPECT_EQ(slow.values, (std::vector<double>{2, 4, 6, 8}));
  EXPECT_EQ(fast.median(), 2.5);
  EXPECT_EQ(samples_of(
                {.warm_up = 1, .rounds = 2},
                [&] { now += taken++; },
                fake_clock)
                .values,
            (std::vector<double>{6, 7}));
}

TEST(Rounds, StopBetweenTwoMeasurements) {
  std::atomic<bool> stop = false;
  int measured = 0;
  Rounds rounds({.rounds = 5, .stop = &stop});
  const Samples& samples = rounds.add([&] {
    stop = ++measured == 3;
    return 0.0;
  });
  EXPECT_THROW(rounds.run(), Stopped);
  EXPECT_EQ(samples.values.size(), 3u);
}

TEST(Rounds, CpuTimeIsTimeOfWorkAndNotOfWaiting) {
  const double before = cpu_seconds();
  double sum = 0;
  while (cpu_seconds() == before) sum += 1;
  EXPECT_GT(seconds_of(
                [&] {
                  const double begin = cpu_seconds();
                  while (cpu_seconds() < begin + 1e-4) sum += 1;
                },
                cpu_seconds),
            0);
  EXPECT_GT(sum, 0);
}

}  // namespace rounds_test
}  // namespace weft::measure
