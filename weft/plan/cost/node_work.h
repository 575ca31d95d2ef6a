// Work of a node: FLOPs and weight bytes of products, FLOPs of attention, bytes in memory and over
// links. It derives from the kernels of the node's piece (kernel_work.h) and carries over between
// models, batches and layouts.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "weft/config/config.h"
#include "weft/grid/grid.h"
#include "weft/schedule/plan.h"

namespace weft::plan {

struct NodeWork {
  double product_flops = 0;
  double products = 0;      // one per expert in a grouped product
  double weight_bytes = 0;  // weights or weight gradients of products, read and written
  double attention_flops = 0;
  double memory_bytes = 0;
  double link_bytes = 0;     // bytes of the largest sender in an operation of several ranks
  double links = 0;          // 1: an operation of several ranks
  double other_seconds = 0;  // nominal time of other work: copies, host work

  NodeWork& operator+=(const NodeWork& other);
  NodeWork& operator*=(double factor);
  bool has_any() const;
};

// By pipeline rank and node without its micro-batch.
using WorkTable = std::map<std::pair<int, schedule::Node>, NodeWork>;

// Work of every node in the plans' training graphs. Time on emulated links is no work: links are
// free here.
WorkTable node_works(const config::Config& config,
                     const grid::Grid& grid,
                     const std::vector<schedule::RankPlan>& plans);

}  // namespace weft::plan
