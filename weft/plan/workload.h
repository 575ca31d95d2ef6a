// What one micro-batch brings a rank: the numbers that the shapes of its kernels follow from.
#pragma once

#include <vector>

#include "weft/config/config.h"
#include "weft/plan/hardware.h"

namespace weft::plan {

struct Workload {
  Number number = Number::Bf16;  // of the layers' products
  Number wide = Number::Bf16;    // of the head's, and of attention: bf16, or fp32 as all the rest
  double element = 2;            // bytes of a weight and of an activation
  double tokens = 0;             // that attention has, over all tensor-parallel ranks
  double own_tokens = 0;         // outside of attention: shared by the tensor-parallel ranks
  double sequence = 0;           // whole
  double tp = 1, cp = 1, ep = 1, etp = 1;
  double rows = 0;           // that the experts of the busiest rank take
  double imbalance = 1;      // of them, over the mean
  double local_experts = 0;  // or shards of them
  bool drops = false;        // every expert takes a fixed number of rows: the host need not know
  bool fuses_experts = false;
  bool is_flex = false;      // tokens travel once to a rank, and not by a plain all-to-all
  ProgramWork program = {};  // whose kernels they are
};

// For a legal config, or a published run that a rule would set something of. `imbalance`: rows of
// the busiest expert-parallel rank over the mean (routing.h).
Workload workload_of(const config::Config& config, double imbalance = 1);
// The same by the hardware's program.
Workload workload_on(const Hardware& hardware, const config::Config& config, double imbalance = 1);

// In what the matrix products of a run are.
Number number_of(const config::ModelConfig& model);
// Whether the host must learn how many rows come before it can go on.
bool host_waits_for_counts(const config::ModelConfig& model);

}  // namespace weft::plan
