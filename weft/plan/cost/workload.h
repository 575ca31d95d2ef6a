// Workload of a rank per micro-batch: the numbers behind its kernels' shapes.
#pragma once

#include <vector>

#include "weft/config/config.h"
#include "weft/plan/hardware/hardware.h"

namespace weft::plan {

struct Workload {
  DType number = DType::BF16;  // the layers' products
  DType wide = DType::BF16;    // head and attention: bf16, or fp32 in fp32 runs
  double element = 2;          // bytes of a weight and of an activation
  double tokens = 0;           // attention's tokens over all tensor-parallel ranks
  double own_tokens = 0;       // outside of attention: split over the tensor-parallel ranks
  double sequence = 0;         // full length
  double tp = 1, cp = 1, ep = 1, etp = 1;
  double rows = 0;           // rows for the experts of the busiest rank
  double imbalance = 1;      // rows of the busiest rank over the mean
  double local_experts = 0;  // or shards of experts
  bool drops = false;        // every expert takes a fixed number of rows: the host needs no counts
  bool fuses_experts = false;
  bool is_flex = false;      // tokens travel once per rank, not by a plain all-to-all
  ProgramWork program = {};  // program of the kernels
};

// Workload of a legal config, or of a published run that needs settings by rules. `imbalance`: rows
// of the busiest expert-parallel rank over the mean (plan/hardware/routing.h).
Workload workload_of(const config::Config& config, double imbalance = 1);
// Variant for the program of the hardware.
Workload workload_on(const Hardware& hardware, const config::Config& config, double imbalance = 1);

// Number format of a run's matrix products.
DType number_of(const config::ModelConfig& model);
// True if the host must read row counts before it can continue.
bool host_waits_for_counts(const config::ModelConfig& model);

}  // namespace weft::plan
