// The parameters one rank holds: views into contiguous buffers, dense and expert apart, in reverse
// order of use (roughly the order in which their gradients become ready).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/model_config.h"
#include "weft/tensor/tensor.h"

namespace weft::model {

using tensor::Pool;
using tensor::Shape;
using tensor::Tensor;

// Dense parameters are the same on every data-parallel rank; expert parameters belong to the ranks
// that own the expert.
enum class Home { Dense, Expert };

struct ParameterSpec {
  std::string name;        // "layers.3.experts.fc1.weight"
  Shape global_shape;      // of the whole model
  Shape shape;             // of this rank's part
  std::int64_t begin = 0;  // first element of this rank's part in the global tensor
  Home home = Home::Dense;
  int layer = -1;             // -1: embedding or head
  double init_deviation = 0;  // 0: starts as ones (a norm)
  bool is_matrix() const { return init_deviation > 0; }
};

// In order of use. `ep_rank` owns experts [ep_rank * L, (ep_rank + 1) * L).
std::vector<ParameterSpec> list_parameters(const config::ModelConfig& config, int ep_rank);

struct Parameter {
  ParameterSpec spec;
  Tensor weight;            // params dtype
  Tensor gradient;          // fp32
  std::int64_t offset = 0;  // in the buffers of its home
};

// One home's parameters, back to back.
struct ParameterBuffer {
  Tensor weights;
  Tensor gradients;  // fp32
};

class Parameters {
 public:
  Parameters(Pool& pool, const config::ModelConfig& config, int ep_rank);

  const std::vector<Parameter>& all() const { return all_; }  // in order of use
  const Parameter& find(std::string_view name) const;
  const ParameterBuffer& buffer(Home home) const { return home == Home::Dense ? dense_ : expert_; }
  // Tied embeddings: the head's side of the gradient, apart until it is added once. Else undefined.
  const Tensor& tied_head_gradient() const { return tied_head_gradient_; }

  // Initial values, a function of (seed, parameter, global element): the same under every layout.
  void initialise(std::uint64_t seed);

 private:
  std::vector<Parameter> all_;
  ParameterBuffer dense_, expert_;
  Tensor tied_head_gradient_;
};

tensor::DType dtype_of(config::Precision precision);

}  // namespace weft::model
