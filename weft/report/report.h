// WHERE DID IT GO, AND WHAT NEXT? What a run or a trace tells of its time and its memory.
//
// Times are milliseconds of a step of one rank: means over the traced steps and the ranks; of a
// simulated step, of the rank that works longest, as those of its price are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/measure/memory_forecast.h"
#include "weft/report/learning.h"
#include "weft/trace/device_trace.h"
#include "weft/trace/exposure.h"
#include "weft/trace/walls.h"

namespace weft::report {

// Of metrics.jsonl, without the first step, which warms up.
struct StepTimes {
  std::int64_t steps = 0;  // that were counted
  double median_ms = 0, tokens_per_second = 0, tflops_per_rank = 0;
};

// The loads of a layer's experts over their mean, in the mean of the steps; 1 is even.
struct LayerLoad {
  int layer = 0;
  double max = 0, p95 = 0, p50 = 0;
  std::int64_t dropped = 0;  // slots, of all steps
};

// Predicted beside measured.
struct Comparison {
  struct Row {
    std::string name;
    double measured_ms = 0, predicted_ms = 0;

    // As a share of what was measured; 0 where nothing was.
    double error() const { return measured_ms > 0 ? predicted_ms / measured_ms - 1 : 0; }
  };
  std::string costs;        // at which it was predicted, in words
  Row step;                 // the traced one
  Row replayed;             // the same from what its nodes cost, with no time between them
  std::vector<Row> pieces;  // "F.experts": all of a step together, longest first
  std::vector<Row> nodes;   // "3F.experts": one execution
  std::string reason;  // why the step is predicted far from what was measured; empty: it is near
};

// What a run needs of memory, predicted by a dry step; see weft/measure/memory_forecast.h.
struct MemoryWall {
  measure::MemoryForecast forecast;
  std::string gpu = {};        // that it has to fit; empty: not known
  std::size_t room_bytes = 0;  // of it, that a run can have

  double share() const;  // of the room; 0 where that is not known
};

// What a trace tells of experts, where no config does.
struct Experts {
  double rows_ms = 0;  // of kernels that route, sort and bring rows, a step of a rank
};

// The order in which the guide asks: does it fit, is it laid out well, where does its time go,
// which single knob is next.
enum class Phase { Fit, Scale, Profile, Retune };
std::string_view word(Phase phase);

struct Suggestion {
  Phase phase = Phase::Retune;
  std::string change;             // words to type
  std::optional<double> gain_ms;  // of the step; less than 0: it costs time; none: not known
  enum class Basis { Simulated, AtMost } basis = Basis::AtMost;  // of the gain
  std::int64_t freed_bytes = 0;                                  // of memory
  std::string because;                                           // the numbers of this run
  std::string rule;                                              // behind it
};

// One thing that a reader of the report should know of the run: {"ranks", "4 ranks (threads),
// ..."}.
struct Fact {
  std::string name, words;
};

struct Report {
  std::string name;         // as it was asked for
  std::string kind;         // "run", "trace of Weft" (measured or simulated), "trace of a profiler"
  std::vector<Fact> about;  // what ran, and on what
  std::vector<std::int64_t> starts;  // steps at which the run was started, where it is known
  std::optional<Learning> learning;
  std::optional<StepTimes> steps;
  std::string crowded;   // ranks that share cores, and what follows; empty: none, or not known
  int traced_steps = 0;  // 0: there is no trace
  trace::Shortened shortened;           // which micro-batches the trace shows; times are of all
  std::vector<trace::RankWalls> ranks;  // where there is one
  bool has_launches = false;            // of another program's: it says when the host was late
  std::optional<int> longest;           // of a simulated step: the rank that times are of
  trace::Walls walls;
  trace::Exposure exposure;
  std::optional<Experts> experts;  // of a trace without a config: nullopt: it has none
  std::vector<LayerLoad> loads;
  std::optional<MemoryWall> memory;
  std::optional<Comparison> comparison;
  std::string wall;                // the dominant one; empty: nothing tells it
  std::vector<Suggestion> next;    // at most three
  std::vector<std::string> notes;  // what is not here, and why

  double step_ms() const;  // traced, else of the metrics
};

}  // namespace weft::report
