// Kernels of one layer: device work, and launches of the host.
//
// The list assumes a good GPU implementation: norms fused with the cast of their output, fused
// attention, grouped products for the experts, weight gradients accumulated in fp32 inside the
// product. Launch counts are those of an eager Python program, in which one tensor operation is one
// or two kernels.
#pragma once

#include <vector>

#include "weft/config/config.h"
#include "weft/plan/cost/workload.h"
#include "weft/plan/hardware/hardware.h"
#include "weft/schedule/node.h"

namespace weft::plan {

enum class KernelKind {
  Product,    // groups of (m, k) x (k, n)
  Attention,  // flops
  Memory,     // bytes
};

struct Kernel {
  schedule::Piece piece = schedule::Piece::Attention;
  schedule::Part part = schedule::Part::None;  // set if a pass splits the piece
  schedule::Direction direction = schedule::Direction::F;
  KernelKind kind = KernelKind::Memory;
  DType number = DType::BF16;
  double m = 0, n = 0, k = 0, groups = 1;
  double flops = 0;
  double bytes = 0;      // read and written
  double launches = 1;   // launches of the host
  bool is_head = false;  // the model's head: bf16 in any layer format
};

// Kernels of layer `layer`: forward, input gradients and weight gradients, without communication.
std::vector<Kernel> layer_kernels(const config::Config& config,
                                  const Workload& work,
                                  std::int64_t layer);
// Kernels of the ends of the model.
std::vector<Kernel> embed_kernels(const config::Config& config, const Workload& work);
std::vector<Kernel> head_kernels(const config::Config& config, const Workload& work);
// Additional kernels of multi-token prediction besides a layer and a head: norms and a product.
std::vector<Kernel> mtp_kernels(const config::Config& config, const Workload& work);

// Time on the device alone.
double device_seconds(const Kernel& kernel, const Hardware& hardware);

}  // namespace weft::plan
