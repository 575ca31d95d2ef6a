// Kernels as they are written down: each call adds those of all directions.
#pragma once

#include <vector>

#include "weft/plan/kernel_work.h"

namespace weft::plan {

// How a product gets its input in few bits.
enum class Cast {
  Alone,  // by a kernel
  Fused,  // by what makes the input: the norm before it, or a fused feed-forward
};

// A call for one of several groups, of a launch with all that a program does around it.
inline constexpr double kGroupLaunch = 0.25;

// Groups of (m, k) x (k, n).
struct ProductShape {
  double m = 0, n = 0, k = 0, groups = 1;
};

class KernelList {
 public:
  KernelList(const config::ModelConfig& of_model, const Workload& the_work)
      : model(of_model), work(the_work) {}

  // One kernel each way that reads and writes so many values of the run.
  void memory(schedule::Piece piece,
              schedule::Part part,
              double forward_values,
              double backward_values,
              double launches = 1);
  // Launches of the host, beside a kernel each way that moves next to nothing.
  void launch(schedule::Piece piece, schedule::Part part, double forward, double backward);
  // So many small kernels that move next to nothing.
  void small(schedule::Piece piece, schedule::Part part, int forward, int backward);
  // Forward, input gradient and weight gradient, with the casts of what enters them.
  void product(schedule::Piece piece,
               schedule::Part part,
               const ProductShape& shape,
               Number number,
               Cast cast);
  void add(const Kernel& kernel) { kernels_.push_back(kernel); }

  std::vector<Kernel> take() { return std::move(kernels_); }

  const config::ModelConfig& model;
  const Workload& work;

 private:
  void add_casts(const Kernel& like, double in, double out, Cast cast);

  std::vector<Kernel> kernels_;
};

// Norm, projections, attention and residual of a layer.
void add_attention(KernelList& list, std::int64_t layer);

}  // namespace weft::plan
