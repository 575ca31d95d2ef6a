// Cases measured in turn: a round measures each case once, in order, so that noise affects all
// alike.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <vector>

namespace weft::measure {

// Thrown from a measurement that was told to stop.
struct Stopped {};
// stop: nullptr: never.
void throw_if_stopped(const std::atomic<bool>* stop);

// Clocks in seconds: steady time, and CPU time of all threads of the process.
double wall_seconds();
double cpu_seconds();

template <typename Work>
double seconds_of(const Work& work, double (*clock)() = wall_seconds) {
  const double start = clock();
  work();
  return clock() - start;
}

// Samples of a case.
struct Samples {
  std::vector<double> values;

  void add(double value) { values.push_back(value); }
  double median() const;
  double least() const;
  double most() const;
};

struct RoundOptions {
  int warm_up = 0;  // rounds before the measured ones, without samples
  int rounds = 5;
  std::function<void(int done, int of)> progress = {};  // called after each measurement
  const std::atomic<bool>* stop = nullptr;              // checked before each measurement
};

class Rounds {
 public:
  explicit Rounds(RoundOptions options) : options_(std::move(options)) {}

  // Adds a case that measures itself; the reference stays valid.
  Samples& add(std::function<double()> measure);
  // Adds a case whose time is measured.
  Samples& time(std::function<void()> work, double (*clock)() = wall_seconds);

  // Runs all rounds. Throws Stopped.
  void run();

 private:
  struct Case {
    std::function<double()> measure;
    Samples samples;
  };
  const RoundOptions options_;
  std::deque<Case> cases_;
};

// Times of one case alone.
Samples samples_of(RoundOptions options,
                   std::function<void()> work,
                   double (*clock)() = wall_seconds);

}  // namespace weft::measure
