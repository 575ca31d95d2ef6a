// Parameters of one rank: views into contiguous buffers, separate for dense and expert parameters.
// They lie in reverse order of use, roughly the order in which gradients become ready.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/model_config.h"
#include "weft/derive/memory/parameter_buffers.h"
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
  Tensor gradient;          // fp32 or bf16; untrained: undefined
  std::int64_t offset = 0;  // in the buffers of its home
};

// Parameters of one home, back to back.
struct ParameterBuffer {
  BufferLayout layout;
  Tensor weights;
  Tensor gradients;  // fp32 or bf16; undefined if not trained
};

// Part of a parameter in a range of its home's buffers.
struct ParameterRange {
  const Parameter* parameter = nullptr;
  tensor::Range elements;  // elements of the parameter
  std::int64_t at = 0;     // position of the first element in the range
};

class Parameters {
 public:
  // Zeroed when the stream reaches it.
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
  // Parameters in a range of a home's buffers, clipped to it, in order of place. Padding belongs to
  // none.
  std::vector<ParameterRange> in_range(Home home, const tensor::Range& range) const;
  // Embedding and head tied on one rank: the head's part of the gradient, separate until the two
  // are added. Otherwise undefined.
  const Tensor& tied_head_gradient() const { return tied_head_gradient_; }
  // Ranges of shard `shard` in a home's buffers: everything, or its share of each bucket.
  std::vector<tensor::Range> shares(Home home, std::int64_t shard) const;
  // Ranges of the shard that count in the norm of the whole model: all but a copied table, which
  // counts on the first stage.
  std::vector<tensor::Range> normed_ranges(Home home, std::int64_t shard) const;

  // Writes initial values, a function of (seed, parameter, global element): equal under every
  // layout and any number of threads.
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

// Format of params_dtype in memory. fp16 is not trained; counted runs keep it as bf16.
tensor::DType dtype_of(tensor::DType params);

}  // namespace weft::model
