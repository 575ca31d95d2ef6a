// The parameters one rank holds: views into contiguous buffers, dense and expert apart, in reverse
// order of use (roughly the order in which their gradients become ready).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/model_config.h"
#include "weft/derive/parameter_buffers.h"
#include "weft/derive/parameter_list.h"
#include "weft/tensor/pool.h"
#include "weft/tensor/slice.h"
#include "weft/tensor/tensor.h"

namespace weft::model {

using tensor::Pool;
using tensor::Shape;
using tensor::Tensor;

using derive::Axis;
using derive::AxisRanks;
using derive::Bucket;
using derive::BufferLayout;
using derive::BufferScheme;
using derive::Holding;
using derive::holding_of;
using derive::Home;
using derive::list_parameters;
using derive::ParameterSpec;
using derive::ranks_of;
using derive::whole_model;

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

class Parameters {
 public:
  // Zeros, when the stream comes to it.
  Parameters(Pool& pool,
             tensor::Stream& stream,
             const config::ModelConfig& config,
             const Holding& holding,
             const AxisRanks& ranks,
             const BufferScheme& scheme = {});

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
  // This rank's share of a home's buffers: all of it, or of each bucket what is shard `shard`'s.
  std::vector<tensor::Range> shares(Home home, std::int64_t shard) const;
  // Of it, what counts in the norm of the whole model: all but a copied table, which is the first
  // stage's.
  std::vector<tensor::Range> normed_ranges(Home home, std::int64_t shard) const;

  // Initial values, a function of (seed, parameter, global element): the same under every layout,
  // and on however many threads they are drawn.
  void initialise(tensor::Stream& stream, std::uint64_t seed, int threads = 1);

 private:
  void make_buffers(Pool& pool,
                    tensor::Stream& stream,
                    Home home,
                    const config::ModelConfig& config,
                    const BufferScheme& scheme);

  Holding holding_;
  std::vector<Parameter> all_;
  std::array<ParameterBuffer, 3> buffers_;  // by home
  Tensor tied_head_gradient_;
  bool copies_table_ = false;
};

tensor::DType dtype_of(config::Precision precision);

}  // namespace weft::model
