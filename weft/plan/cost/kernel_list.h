// List of kernels: each call adds the kernels of all directions.
#pragma once

#include <utility>
#include <vector>

#include "weft/plan/cost/kernel_work.h"

namespace weft::plan {

// Conversion of a product's input to a narrow format.
enum class Cast {
  Alone,  // separate kernel
  Fused,  // fused into the producer of the input: the preceding norm, or a fused feed-forward
};

// Cost of one launch among several groups, relative to a full launch.
inline constexpr double kGroupLaunch = 0.25;

// Groups of (m, k) x (k, n).
struct ProductShape {
  double m = 0, n = 0, k = 0, groups = 1;
};

class KernelList {
 public:
  KernelList(const config::ModelConfig& of_model, const Workload& the_work)
      : model(of_model), work(the_work) {}

  // Adds one kernel per direction that reads and writes this many values.
  void memory(schedule::Piece piece,
              schedule::Part part,
              double forward_values,
              double backward_values,
              double launches = 1);
  // Adds host launches, with a negligible kernel per direction.
  void launch(schedule::Piece piece, schedule::Part part, double forward, double backward);
  // Adds small kernels of negligible size.
  void small(schedule::Piece piece, schedule::Part part, int forward, int backward);
  // Adds forward, input gradient and weight gradient, with the casts of their inputs.
  void product(schedule::Piece piece,
               schedule::Part part,
               const ProductShape& shape,
               DType number,
               Cast cast);
  void add(const Kernel& kernel) { kernels_.push_back(kernel); }

  std::vector<Kernel> take() { return std::move(kernels_); }

  const config::ModelConfig& model;
  const Workload& work;

 private:
  void add_casts(const Kernel& like, double in, double out, Cast cast);

  std::vector<Kernel> kernels_;
};

}  // namespace weft::plan
