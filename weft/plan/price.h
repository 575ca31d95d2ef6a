// WHAT WOULD A RUN COST? Step time and memory of a config on a kind of GPU, before anything runs.
//
// The price is that of the run's schedule on the clock, in two levels: layers node by node in the
// real order of a small run of them (simulated_layer.h), the pipeline turn by turn in the order of
// its rounds (pipeline_clock.h). Nodes take what their kernels (kernel_work.h) and wires
// (wire_time.h) take. It is deterministic, and takes some milliseconds. A search of very many
// layouts asks a formula first, which takes a fraction of that. docs/plan.md says what is left out
// and how good it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/config/config.h"
#include "weft/plan/hardware.h"
#include "weft/plan/memory_book.h"
#include "weft/plan/routing.h"
#include "weft/plan/simulated_layer.h"
#include "weft/plan/workload.h"
#include "weft/trace/dominant_wall.h"

namespace weft::plan {

class FormulaLayers;

using trace::Wall;  // why a step is not shorter
// For people: "host (the GPU waits for launches)".
std::string wall_text(Wall wall);

// Of one step on the rank that takes longest: what nothing hides.
struct ExposedMs {
  double ep = 0, dp = 0, tp = 0, pp = 0, cp = 0;  // communication
  double copy = 0;                                // activations to and from the host's memory
  double host = 0;                                // the device waits for launches
  double update = 0;                              // and for optimizer state on the host

  double communication() const { return ep + dp + tp + pp + cp + copy; }
};

// Device time of one step by what limits it, on the same rank; hidden communication is not in it.
struct ComputeMs {
  double products = 0, attention = 0, memory = 0, optimizer = 0;

  double total() const { return products + attention + memory + optimizer; }
};

// Of the pipeline rank that needs most.
struct MemoryPrice {
  int pp_rank = 0;
  double weights = 0, gradients = 0, optimizer = 0;  // bytes
  double activations = 0;  // kept for the backward by the micro-batches in flight
  double logits = 0;       // and the loss
  double buffers = 0;      // of dispatch, collectives and the workspace of kernels
  double graphs = 0;       // what CUDA graphs keep for themselves
  double reserved = 0;     // context, libraries and what an allocator cannot use
  double capacity = 0;     // of the GPU
  double host = 0;         // of the host's memory: what is offloaded
  double host_capacity = 0;

  // Of the GPU.
  double total() const {
    return weights + gradients + optimizer + activations + logits + buffers + graphs + reserved;
  }
  bool fits_host() const { return host <= host_capacity; }
  bool fits() const { return total() <= capacity && fits_host(); }
};

struct Price {
  double step_ms = 0;
  double tokens_per_second_per_gpu = 0;
  double tflops_per_gpu = 0;  // by derive::flops_per_token
  double mfu = 0;             // of the peak of the run's own number format
  double bubble = 0;          // share of the step in which a pipeline rank has nothing to do
  ExposedMs exposed;
  ComputeMs compute;
  MemoryPrice memory;
  Wall wall = Wall::Compute;
};

// The config is legal, or differs from a legal one only in parts that rules would set. What this
// build does not run (fp8, graphs, full sharding, multi-token prediction) is priced too.
Price price_run(const config::Config& config,
                const Hardware& hardware,
                const Routing& routing = {});
Price price_run(const config::Config& config,
                const Hardware& hardware,
                const Routing& routing,
                MemoryBook& book);
// The same by formula: sums of layers, two lanes for what is merged, and a bubble. Near the price
// (a test says how near), and good enough to leave out what is much slower than the best.
Price sieve_step(const config::Config& config,
                 const Hardware& hardware,
                 const Routing& routing = {});
// The same with what others of many runs have in common looked up.
struct SieveBooks {
  MemoryBook& runs;
  FormulaLayers& layers;
};
Price sieve_step(const config::Config& config,
                 const Hardware& hardware,
                 const Routing& routing,
                 const SieveBooks& books);
// Without the memory, for who has it already or does not ask.
Price price_step(const config::Config& config,
                 const Hardware& hardware,
                 const Routing& routing = {},
                 const LayerMemory& memory = {});
// What the pieces of layers declare that they keep, for the micro-batches that the order of turns
// has in flight together: the highest mark of the run's schedule, without its graph. Near what
// `weft memory` counts (a test says how near).
MemoryPrice price_memory(const config::Config& config,
                         const Hardware& hardware,
                         const Routing& routing,
                         MemoryBook& book);
MemoryPrice price_memory(const config::Config& config,
                         const Hardware& hardware,
                         const Routing& routing = {});

// Of every pipeline rank.
std::vector<MemoryPrice> price_ranks(const config::Config& config,
                                     const Hardware& hardware,
                                     const Routing& routing,
                                     MemoryBook& book);

// What the layers of a pipeline rank keep for the micro-batches in flight, at most, while it works
// on that chunk; rows are routed evenly.
double kept_in_chunk(const config::Config& config, int rank, std::size_t chunk, MemoryBook& book);

base::Json to_json(const MemoryPrice& memory);
base::Json to_json(const Price& price);
std::string to_text(const Price& price);

}  // namespace weft::plan
