// What a node asks of a machine: operations of matrix products and the weights they touch,
// operations of attention, bytes in memory, bytes over links. From the kernels of its piece
// (kernel_work.h), so that it carries over between models, batches and layouts.
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
  double products = 0;      // of a group for each expert, as many
  double weight_bytes = 0;  // of products: weights, or gradients of weights, read and written
  double attention_flops = 0;
  double memory_bytes = 0;
  double link_bytes = 0;     // of an operation of several ranks, sent by the one that sends most
  double links = 0;          // 1 where it is one
  double other_seconds = 0;  // at nominal rates, of what is none of these: copies, the host's work

  NodeWork& operator+=(const NodeWork& other);
  NodeWork& operator*=(double factor);
  bool has_any() const;
};

// By pipeline rank and node without its micro-batch.
using WorkTable = std::map<std::pair<int, schedule::Node>, NodeWork>;

// Of every node of the plans' training graphs. Links are free: what emulated ones take is no work.
WorkTable node_works(const config::Config& config,
                     const grid::Grid& grid,
                     const std::vector<schedule::RankPlan>& plans);

}  // namespace weft::plan
