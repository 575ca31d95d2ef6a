// How much work a node is: floating-point operations, and bytes where memory is the limit.
#pragma once

#include <map>

#include "weft/config/config.h"
#include "weft/derive/optimizer_traffic.h"
#include "weft/schedule/anatomy.h"

namespace weft::plan {

inline constexpr double kGradientBytes = 4;  // of a parameter: gradients are fp32, unless told

struct Work {
  double flops = 0;
  double memory_bytes = 0;
};

// Of the nodes of one pipeline rank, with rows routed evenly. Over a step, the operations add up
// to config::flops_per_token() and the router's.
class NominalWork {
 public:
  NominalWork(const config::Config& config, const schedule::Anatomy& anatomy);

  // A compute node's.
  Work of(const schedule::Node& node) const;

  double element_bytes() const { return element_bytes_; }  // of a weight
  double gradient_bytes() const { return gradient_bytes_; }

  // What a weight gradient moves besides its product where that cannot add to what is there: it is
  // made in fp32 and added, or rounded and added to bf16. Part of what `of` says.
  double added_gradient_bytes(const schedule::Node& node) const;

  // Of offloaded optimizer state: what the host reads and writes for an update, and what a download
  // or an upload brings over its link.
  double host_bytes(const schedule::OffloadedAnatomy& offloaded) const;
  double link_bytes(const schedule::OffloadedAnatomy& offloaded, const schedule::Node& node) const;

 private:
  Work work_of(const schedule::Node& node) const;
  Work attention(const schedule::Node& node) const;
  Work rounding(const schedule::Node& node) const;
  double product_steps(const schedule::Node& node) const;
  Work feed_forward_work(const schedule::Node& node, double rows, std::int64_t width) const;

  const config::ModelConfig& model_;
  double tokens_ = 0, rows_ = 0;
  double slices_ = 1;
  double element_bytes_ = 0, gradient_bytes_ = 0;
  derive::OptimizerTraffic optimizer_;
  double owned_ = 0;      // parameters whose optimizer state the rank keeps
  double optimized_ = 0;  // of them, those whose state is in the device's memory
  std::vector<schedule::BucketAnatomy> buckets_;
  std::map<schedule::PieceAt, double> weights_;  // of the rank, how many
};

}  // namespace weft::plan
