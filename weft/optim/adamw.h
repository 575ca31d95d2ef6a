// WHAT CHANGES? AdamW over a contiguous buffer of parameters: moments, and fp32 master weights
// where the weights themselves are not fp32.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/config/config.h"
#include "weft/kernels/kernels.h"
#include "weft/tensor/device.h"
#include "weft/tensor/pool.h"
#include "weft/tensor/slice.h"
#include "weft/tensor/tensor.h"

namespace weft::optim {

using tensor::Pool;
using tensor::Range;
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

// What a step applies. `step` counts from 1.
struct Applied {
  double learning_rate = 0;
  double gradient_scale = 1;
  std::int64_t step = 1;
};

// What the state lies in: moments in fp32, bf16 or fp16; masters in fp32 or fp16, or int16 for the
// bits that bf16 weights lack (tensor/narrow_numbers.h). Where weights are fp32 there are no
// masters.
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
  // The same with all state in host memory. It has master weights whatever the weights are: where
  // those are fp32, a copy of them. `host` works on host memory, `stream` on the device.
  static AdamW offloaded(Pool& pool,
                         Stream& host,
                         Stream& stream,
                         Tensor weights_N,
                         Tensor gradients_N,
                         std::vector<Segment> segments,
                         const StateDtypes& dtypes = {});

  // Applies the gradients times their scale.
  void apply(Stream& stream, const config::OptimizerConfig& config, const Applied& applied) const;
  // Of some elements of offloaded state: from gradients brought to the host, to weights that are
  // still to go to the device.
  void apply_on_host(Stream& host,
                     const config::OptimizerConfig& config,
                     const Applied& applied,
                     const Range& elements,
                     const Tensor& gradients,
                     const Tensor& weights) const;
  // Where these are made: in `room`, or where weights are fp32, the master weights themselves.
  Tensor new_weights(const Range& elements, const Tensor& room) const;

  const Tensor& weights() const { return weights_N_; }
  const Tensor& gradients() const { return gradients_N_; }

  const Tensor& moment1() const { return moment1_N_; }
  const Tensor& moment2() const { return moment2_N_; }
  // The weights themselves where they are fp32; int16 where it is what bf16 weights lack; fp16.
  const Tensor& master() const { return master_N_; }
  void refresh_master(Stream& stream);  // after the weights were set from outside
  // Whether the master weights are a copy that is no state of its own: offloaded, of fp32 weights.
  bool master_is_copy() const;

 private:
  enum class Residence { Device, Host };
  AdamW(Pool& pool,
        Tensor weights_N,
        Tensor gradients_N,
        std::vector<Segment> segments,
        const StateDtypes& dtypes,
        Residence residence);
  std::vector<kernels::ElementRun> undecayed(const config::OptimizerConfig& config,
                                             const Range& elements) const;
  kernels::AdamW options(const config::OptimizerConfig& config,
                         const Applied& applied,
                         const Range& elements) const;

  Tensor weights_N_, gradients_N_, master_N_, moment1_N_, moment2_N_;
  std::vector<Segment> segments_;
};

}  // namespace weft::optim
