// Report on the time and memory of a run or a trace, with suggestions.
//
// Times are milliseconds per step of one rank: means over the traced steps and the ranks. In a
// simulated step they belong to the rank that works longest, as its price does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/measure/memory/memory_forecast.h"
#include "weft/report/learning.h"
#include "weft/trace/device_trace.h"
#include "weft/trace/exposure/exposure.h"
#include "weft/trace/exposure/walls.h"

namespace weft::report {

// Step times in metrics.jsonl, without the first step, which warms up.
struct StepTimes {
  std::int64_t steps = 0;  // counted steps
  double median_ms = 0, tokens_per_second = 0, tflops_per_rank = 0;
};

// Expert loads of a layer relative to their mean, averaged over the steps; 1 is even.
struct LayerLoad {
  int layer = 0;
  double max = 0, p95 = 0, p50 = 0;
  std::int64_t dropped = 0;  // slots over all steps
};

// Prediction against measurement.
struct Comparison {
  struct Row {
    std::string name;
    double measured_ms = 0, predicted_ms = 0;

    // Relative to the measurement; 0: nothing measured.
    double error() const { return measured_ms > 0 ? predicted_ms / measured_ms - 1 : 0; }
  };
  std::string costs;        // description of the costs behind the prediction
  Row step;                 // traced step
  Row replayed;             // replay with its own node costs and no gaps
  std::vector<Row> pieces;  // "F.experts": sum over a step, longest first
  std::vector<Row> nodes;   // "3F.experts": one execution
  std::string reason;       // reason for a poor prediction; empty: a good one
};

// Memory need of a run, predicted by a dry step; see weft/measure/memory/memory_forecast.h.
struct MemoryWall {
  measure::MemoryForecast forecast;
  std::string gpu = {};        // GPU that it must fit; empty: unknown
  std::size_t room_bytes = 0;  // memory of the GPU available to a run

  double share() const;  // need / room; 0: unknown
};

// Experts in a trace without a config.
struct Experts {
  double rows_ms = 0;  // per step and rank, kernels that route, sort and move rows
};

// Questions of the guide in order: fit into memory, layout, time by cause, next single change.
enum class Phase { Fit, Scale, Profile, Retune };
std::string_view word(Phase phase);

struct Suggestion {
  Phase phase = Phase::Retune;
  std::string change;             // words for the command line
  std::optional<double> gain_ms;  // time gained per step; negative: slower; nullopt: unknown
  enum class Basis { Simulated, AtMost } basis = Basis::AtMost;  // basis of gain_ms
  std::int64_t freed_bytes = 0;                                  // memory
  std::string because;                                           // numbers of this run
  std::string rule;                                              // rule behind it
};

// Fact about the run for the reader: {"ranks", "4 ranks (threads), ..."}.
struct Fact {
  std::string name, words;
};

struct Report {
  std::string name;         // as given by the user
  std::string kind;         // "run", "trace of Weft" (measured or simulated), "trace of a profiler"
  std::vector<Fact> about;  // command, model and hardware
  std::vector<std::int64_t> starts;  // steps at which the run was started, if known
  std::optional<Learning> learning;
  std::optional<StepTimes> steps;
  std::string crowded;                  // effect of ranks that share cores; empty: none, or unknown
  int traced_steps = 0;                 // 0: no trace
  trace::Shortened shortened;           // micro-batches in the trace; times cover all of them
  std::vector<trace::RankWalls> ranks;  // empty: no trace
  bool has_launches = false;            // a profiler's trace with launches: it shows late hosts
  std::optional<int> longest;           // rank behind the times of a simulated step
  trace::Walls walls;
  trace::Exposure exposure;
  std::optional<Experts> experts;  // nullopt: a trace without experts
  std::vector<LayerLoad> loads;
  std::optional<MemoryWall> memory;
  std::optional<Comparison> comparison;
  std::string wall;                // dominant wall; empty: unknown
  std::vector<Suggestion> next;    // at most three
  std::vector<std::string> notes;  // missing facts with the reason

  double step_ms() const;  // traced; without a trace from the metrics
};

}  // namespace weft::report
