// Price of a run before it starts: step time and memory of a config on a kind of GPU.
//
// The price simulates the run's schedule at two levels. Layers run node by node in the real order
// of a small run of them (simulated_layer.h). The pipeline runs turn by turn in the order of its
// rounds (pipeline_clock.h). Node times come from kernels (plan/cost/kernel_work.h) and wires
// (plan/hardware/wire_time.h). A price is deterministic and takes some milliseconds; a large search
// first uses a formula, which is far cheaper. docs/plan.md states omissions and accuracy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/config/config.h"
#include "weft/plan/cost/workload.h"
#include "weft/plan/hardware/hardware.h"
#include "weft/plan/hardware/routing.h"
#include "weft/plan/memory/memory_book.h"
#include "weft/plan/price/simulated_layer.h"
#include "weft/trace/exposure/dominant_wall.h"

namespace weft::plan {

class FormulaLayers;

using trace::Wall;  // reason why a step is not shorter
// Text such as "host (the GPU waits for launches)".
std::string wall_text(Wall wall);

// Exposed times of one step on the slowest rank.
struct ExposedMs {
  double ep = 0, dp = 0, tp = 0, pp = 0, cp = 0;  // communication
  double copy = 0;                                // activations to and from host memory
  double host = 0;                                // device waits for launches
  double update = 0;                              // device waits for optimizer state on the host

  double communication() const { return ep + dp + tp + pp + cp + copy; }
};

// Device time of one step by limit, on the same rank; excludes hidden communication.
struct ComputeMs {
  double products = 0, attention = 0, memory = 0, optimizer = 0;

  double total() const { return products + attention + memory + optimizer; }
};

// Memory of the pipeline rank that needs most.
struct MemoryPrice {
  int pp_rank = 0;
  double weights = 0, gradients = 0, optimizer = 0;  // bytes
  double activations = 0;  // kept for the backward by the micro-batches in flight
  double logits = 0;       // and the loss
  double buffers = 0;      // dispatch, collectives and kernel workspaces
  double graphs = 0;       // memory pools of CUDA graphs
  double reserved = 0;     // context, libraries and allocator fragmentation
  double capacity = 0;     // the GPU's memory
  double host = 0;         // offloaded bytes in host memory
  double host_capacity = 0;

  // Total on the GPU.
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
  double mfu = 0;             // relative to the peak of the run's number format
  double bubble = 0;          // share of the step in which a pipeline rank is idle
  ExposedMs exposed;
  ComputeMs compute;
  MemoryPrice memory;
  Wall wall = Wall::Compute;
};

// Prices a config that is legal, or needs only settings by rules. Parts that this build does not
// run (fp8, graphs, full sharding, multi-token prediction) are priced too.
Price price_run(const config::Config& config,
                const Hardware& hardware,
                const Routing& routing = {});
Price price_run(const config::Config& config,
                const Hardware& hardware,
                const Routing& routing,
                MemoryBook& book);
// Variant by formula: sums of layers, two lanes for merged nodes, and a bubble. A test bounds its
// distance from the price. Suitable to discard much slower layouts.
Price sieve_step(const config::Config& config,
                 const Hardware& hardware,
                 const Routing& routing = {});
// Variant with caches of parts that many runs share.
struct SieveBooks {
  MemoryBook& runs;
  FormulaLayers& layers;
};
Price sieve_step(const config::Config& config,
                 const Hardware& hardware,
                 const Routing& routing,
                 const SieveBooks& books);
// Variant without memory.
Price price_step(const config::Config& config,
                 const Hardware& hardware,
                 const Routing& routing = {},
                 const LayerMemory& memory = {});
base::Json to_json(const MemoryPrice& memory);
base::Json to_json(const Price& price);
std::string to_text(const Price& price);

}  // namespace weft::plan
