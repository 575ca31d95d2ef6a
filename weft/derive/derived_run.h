// Derived numbers of a run, for reading before it starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/config/config.h"
#include "weft/derive/dispatch.h"
#include "weft/derive/memory/memory.h"
#include "weft/derive/parameters.h"
#include "weft/derive/pipeline.h"
#include "weft/grid/layout.h"

namespace weft::derive {

// Pipeline rank; all ranks of its stage are alike.
struct DerivedRank {
  std::vector<Stage> stages;  // its chunks
  RankParameters parameters;
  StateBytes bytes;
};

struct DerivedRun {
  grid::Layout layout;
  std::int64_t vpp = 1;
  std::int64_t dp = 1;
  std::int64_t edp = 1;
  std::int64_t micro_batches = 1;  // per rank and step
  std::int64_t tokens_per_step = 0;
  ParameterCount parameters;
  double flops_per_token = 0;
  std::vector<DerivedRank> ranks;  // by pipeline rank
  DispatchNumbers dispatch;
};

// Requires a legal config.
DerivedRun derived_run(const config::Config& config);

base::Json to_json(const DerivedRun& run);
// Named lines for a reader.
std::string to_text(const DerivedRun& run);

}  // namespace weft::derive
