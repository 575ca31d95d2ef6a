// WHAT CHANGES? AdamW over a contiguous buffer of parameters: moments, and fp32 master weights
// where the weights themselves are not fp32.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/config/config.h"
#include "weft/kernels/kernels.h"
#include "weft/tensor/tensor.h"

namespace weft::optim {

using tensor::Pool;
using tensor::Stream;
using tensor::Tensor;

enum class Decay { Yes, No };

// A run of neighbouring parameters that decay alike.
struct Segment {
  std::int64_t begin = 0, count = 0;
  Decay decay = Decay::Yes;
};

// Joins neighbours that decay alike; `segments` are in order of begin, gaps (padding) join what
// precedes.
std::vector<Segment> join_segments(std::vector<Segment> segments, std::int64_t end);

// What the state lies in: moments in fp32, bf16 or fp16; masters in fp32, or int16 for the bits
// that bf16 weights lack (tensor/narrow_numbers.h). Where weights are fp32 there are no masters.
struct StateDtypes {
  tensor::DType moment1 = tensor::DType::F32, moment2 = tensor::DType::F32;
  tensor::DType master = tensor::DType::F32;

  bool operator==(const StateDtypes&) const = default;
};

class AdamW {
 public:
  // Moments start at zero, master weights as the weights are when the stream comes to it.
  AdamW(Pool& pool,
        Stream& stream,
        Tensor weights_N,
        Tensor gradients_N,
        std::vector<Segment> segments,
        const StateDtypes& dtypes = {});

  // Applies the gradients times `gradient_scale`. `step` counts from 1.
  void apply(Stream& stream,
             const config::OptimizerConfig& config,
             double learning_rate,
             double gradient_scale,
             std::int64_t step) const;

  const Tensor& moment1() const { return moment1_N_; }
  const Tensor& moment2() const { return moment2_N_; }
  // The weights themselves where they are fp32; int16 where it is what bf16 weights lack.
  const Tensor& master() const { return master_N_; }
  void refresh_master(Stream& stream);  // after the weights were set from outside

 private:
  std::vector<kernels::ElementRun> undecayed(const config::OptimizerConfig& config) const;

  Tensor weights_N_, gradients_N_, master_N_, moment1_N_, moment2_N_;
  std::vector<Segment> segments_;
};

}  // namespace weft::optim
