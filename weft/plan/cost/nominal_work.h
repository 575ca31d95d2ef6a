// Work of a node: FLOPs, and bytes if memory is the limit.
#pragma once

#include <map>
#include <vector>

#include "weft/block/block.h"
#include "weft/config/config.h"
#include "weft/derive/blocks.h"
#include "weft/derive/memory/optimizer_traffic.h"
#include "weft/schedule/anatomy.h"

namespace weft::plan {

// Per parameter: gradients are fp32 unless set otherwise.
inline constexpr double kGradientBytes = 4;

struct Work {
  double flops = 0;
  double memory_bytes = 0;
};

// Work of one pipeline rank's nodes under even routing. Over a step the FLOPs sum to
// derive::flops_per_token() plus the router's.
class NominalWork {
 public:
  NominalWork(const config::Config& config, const schedule::Anatomy& anatomy);

  // Work of a compute node.
  Work of(const schedule::Node& node) const;

  double element_bytes() const { return element_bytes_; }  // bytes of a weight
  double gradient_bytes() const { return gradient_bytes_; }

  // Extra bytes of a weight gradient whose product cannot accumulate in place: it is made in fp32
  // and added, or rounded and added to bf16. Included in `of`.
  double added_gradient_bytes(const schedule::Node& node) const;

  // Offloaded optimizer state: bytes that the host reads and writes per update, and bytes of a
  // download or an upload.
  double host_bytes(const schedule::OffloadedAnatomy& offloaded) const;
  double link_bytes(const schedule::OffloadedAnatomy& offloaded, const schedule::Node& node) const;

 private:
  Work work_of(const schedule::Node& node) const;
  const block::Block& block_of(const schedule::Node& node) const;
  double passed(const schedule::Node& node, block::Over over) const;
  Work block_work(const schedule::Node& node) const;
  Work rounding(const schedule::Node& node) const;

  const config::ModelConfig& model_;
  double tokens_ = 0, rows_ = 0;
  double slices_ = 1;
  double element_bytes_ = 0, gradient_bytes_ = 0;
  derive::OptimizerTraffic optimizer_;
  double owned_ = 0;      // parameters whose optimizer state the rank keeps
  double optimized_ = 0;  // among them, parameters with state in device memory
  std::vector<schedule::BucketAnatomy> buckets_;
  std::vector<block::Block> head_;
  std::map<derive::LayerKind, std::vector<block::Block>> blocks_;  // of the rank's layers
  std::map<schedule::PieceAt, double> weights_;                    // number of weights on the rank
};

}  // namespace weft::plan
