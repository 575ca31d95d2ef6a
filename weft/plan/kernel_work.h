// The kernels of one layer: what the device computes and moves, and what the host launches.
//
// They are those of a good implementation on GPUs: norms fused with what casts their output, fused
// attention, grouped products for the experts, weight gradients that add to fp32 inside the
// product. Counts of launches are those of an eager program in Python, where one operation on
// tensors is one or two kernels.
#pragma once

#include <vector>

#include "weft/config/config.h"
#include "weft/plan/hardware.h"
#include "weft/plan/workload.h"
#include "weft/schedule/node.h"

namespace weft::plan {

enum class KernelKind {
  Product,    // groups of (m, k) x (k, n)
  Attention,  // flops
  Memory,     // bytes
};

struct Kernel {
  schedule::Piece piece = schedule::Piece::Attention;
  schedule::Part part = schedule::Part::None;  // where a pass splits the piece
  schedule::Direction direction = schedule::Direction::F;
  KernelKind kind = KernelKind::Memory;
  Number number = Number::Bf16;
  double m = 0, n = 0, k = 0, groups = 1;
  double flops = 0;
  double bytes = 0;      // read and written
  double launches = 1;   // of the host
  bool is_head = false;  // of the model: in bf16, whatever the layers are in
};

// Of layer `layer`: forward, input gradients and weight gradients, without what travels.
std::vector<Kernel> layer_kernels(const config::Config& config,
                                  const Workload& work,
                                  std::int64_t layer);
// The same of the ends of the model.
std::vector<Kernel> embed_kernels(const config::Config& config, const Workload& work);
std::vector<Kernel> head_kernels(const config::Config& config, const Workload& work);
// What multi-token prediction has besides a layer and a head: norms and a product.
std::vector<Kernel> mtp_kernels(const config::Config& config, const Workload& work);

// On the device, alone.
double device_seconds(const Kernel& kernel, const Hardware& hardware);

}  // namespace weft::plan
