// The parameters one rank holds: views into contiguous buffers, dense and expert apart, in reverse
// order of use (roughly the order in which their gradients become ready).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/model_config.h"
#include "weft/model/axis_split.h"
#include "weft/model/buffer_layout.h"
#include "weft/model/holding.h"
#include "weft/tensor/tensor.h"

namespace weft::model {

using tensor::Pool;
using tensor::Shape;
using tensor::Tensor;

// Dense parameters are the same on every data-parallel rank; expert parameters belong to the ranks
// that own the expert. Untrained ones have no gradient and no optimizer: the routers' biases, which
// balance moves; fp32 whatever the weights are, the same on every data-parallel rank.
enum class Home { Dense, Expert, Untrained };

struct ParameterSpec {
  std::string name;               // "layers.3.experts.fc1.weight"
  Shape global_shape;             // of the whole model
  std::vector<AxisSplit> splits;  // by which axes, along which dims
  tensor::Slice slice;            // this rank's part
  Shape shape;                    // of that
  Home home = Home::Dense;
  int layer = -1;             // -1: embedding or head
  double init_deviation = 0;  // 0: starts as ones (a norm), or as zeros where it is not trained
  bool is_matrix() const { return init_deviation > 0; }
  bool is_trained() const { return home != Home::Untrained; }
};

// Those of a holding, in order of use. Where the head has its own copy of a tied table,
// "embedding.weight" comes last.
std::vector<ParameterSpec> list_parameters(const config::ModelConfig& config,
                                           const Holding& holding,
                                           const AxisRanks& ranks);

struct Parameter {
  ParameterSpec spec;
  Tensor weight;            // params dtype; untrained: fp32
  Tensor gradient;          // fp32; untrained: undefined
  std::int64_t offset = 0;  // in the buffers of its home
};

// One home's parameters, back to back.
struct ParameterBuffer {
  BufferLayout layout;
  Tensor weights;
  Tensor gradients;  // fp32; undefined where they are not trained
};

// What of a parameter lies in a range of its home's buffers.
struct ParameterRange {
  const Parameter* parameter = nullptr;
  tensor::Range elements;  // of the parameter
  std::int64_t at = 0;     // where the first of them is in the range
};

// Whether embedding and head share a table.
enum class Ties { Yes, No };

class Parameters {
 public:
  // Zeros, when the stream comes to it.
  Parameters(Pool& pool,
             tensor::Stream& stream,
             const config::ModelConfig& config,
             const Holding& holding,
             const AxisRanks& ranks,
             const BufferRules& rules = {});

  const std::vector<Parameter>& all() const { return all_; }  // in order of use
  bool has(std::string_view name) const;
  const Parameter& find(std::string_view name) const;
  const ParameterBuffer& buffer(Home home) const {
    return buffers_[static_cast<std::size_t>(home)];
  }
  const Holding& holding() const { return holding_; }
  // The parameters that lie in a range of a home's buffers, as far as they do, in the order they
  // lie. Padding is nobody's.
  std::vector<ParameterRange> in_range(Home home, const tensor::Range& range) const;
  // Embedding and head tied on one rank: the head's side of the gradient, apart until it is added
  // once. Else undefined.
  const Tensor& tied_head_gradient() const { return tied_head_gradient_; }
  // The dense gradients that are this rank's in the norm of the whole model: all but those of a
  // copied table, which is the first stage's.
  const tensor::Range& normed_dense() const { return normed_dense_; }

  // Initial values, a function of (seed, parameter, global element): the same under every layout,
  // and on however many threads they are drawn.
  void initialise(tensor::Stream& stream, std::uint64_t seed, int threads = 1);

 private:
  void make_buffers(Pool& pool,
                    tensor::Stream& stream,
                    Home home,
                    tensor::DType dtype,
                    Ties ties,
                    const BufferRules& rules);

  Holding holding_;
  std::vector<Parameter> all_;
  std::array<ParameterBuffer, 3> buffers_;  // by home
  Tensor tied_head_gradient_;
  tensor::Range normed_dense_;
};

tensor::DType dtype_of(config::Precision precision);

}  // namespace weft::model
