#include "weft/measure/runs/rounds.h"

#include <time.h>

#include <algorithm>

#include "weft/base/median.h"

namespace weft::measure {
namespace {

double seconds_by(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

void throw_if_stopped(const std::atomic<bool>* stop) {
  if (stop != nullptr && stop->load()) throw Stopped{};
}

double wall_seconds() { return seconds_by(CLOCK_MONOTONIC); }
double cpu_seconds() { return seconds_by(CLOCK_PROCESS_CPUTIME_ID); }

double Samples::median() const { return base::median(values); }
double Samples::least() const { return std::ranges::min(values); }
double Samples::most() const { return std::ranges::max(values); }

Samples& Rounds::add(std::function<double()> measure) {
  return cases_.emplace_back(Case{std::move(measure), {}}).samples;
}

Samples& Rounds::time(std::function<void()> work, double (*clock)()) {
  return add([work = std::move(work), clock] { return seconds_of(work, clock); });
}

void Rounds::run() {
  const int rounds = options_.warm_up + options_.rounds;
  const int of = rounds * static_cast<int>(cases_.size());
  int done = 0;
  for (int round = 0; round < rounds; ++round) {
    for (Case& each : cases_) {
      throw_if_stopped(options_.stop);
      const double sample = each.measure();
      if (round >= options_.warm_up) each.samples.add(sample);
      if (options_.progress) options_.progress(++done, of);
    }
  }
}

Samples samples_of(RoundOptions options, std::function<void()> work, double (*clock)()) {
  Rounds rounds(std::move(options));
  const Samples& samples = rounds.time(std::move(work), clock);
  rounds.run();
  return samples;
}

}  // namespace weft::measure
