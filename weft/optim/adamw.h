// AdamW over a contiguous buffer of parameters: moments, and master weights unless the weights are
// fp32.
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

// Adjacent parameters with equal decay.
struct Segment {
  std::int64_t begin = 0, count = 0;
  Decay decay = Decay::Yes;
};

// Joins adjacent segments with equal decay. `segments` are sorted by begin; a gap (padding) joins
// the segment before it.
std::vector<Segment> join_segments(std::vector<Segment> segments, std::int64_t end);

// Arguments of one update. `step` counts from 1.
struct Applied {
  double learning_rate = 0;
  double gradient_scale = 1;
  std::int64_t step = 1;
};

// Dtypes of the state. Moments: fp32, bf16 or fp16. Masters: fp32, fp16, or int16 with the
// remainder of bf16 weights (tensor/narrow_numbers.h). fp32 weights have no masters.
struct StateDtypes {
  tensor::DType moment1 = tensor::DType::F32, moment2 = tensor::DType::F32;
  tensor::DType master = tensor::DType::F32;

  bool operator==(const StateDtypes&) const = default;
};

class AdamW {
 public:
  // Moments start at zero. Master weights start as the weights at this point of the stream.
  AdamW(Pool& pool,
        Stream& stream,
        Tensor weights_N,
        Tensor gradients_N,
        std::vector<Segment> segments,
        const StateDtypes& dtypes = {});
  // Variant with all state in host memory. It always has master weights: for fp32 weights a copy of
  // them. `host` works on host memory, `stream` on the device.
  static AdamW offloaded(Pool& pool,
                         Stream& host,
                         Stream& stream,
                         Tensor weights_N,
                         Tensor gradients_N,
                         std::vector<Segment> segments,
                         const StateDtypes& dtypes = {});

  // Applies the gradients times gradient_scale.
  void apply(Stream& stream, const config::OptimizerConfig& config, const Applied& applied) const;
  // Updates a range of offloaded state on the host. `gradients` were downloaded; `weights` are
  // uploaded afterwards.
  void apply_on_host(Stream& host,
                     const config::OptimizerConfig& config,
                     const Applied& applied,
                     const Range& elements,
                     const Tensor& gradients,
                     const Tensor& weights) const;
  // Destination of new weights: `room`, or the master weights themselves if weights are fp32.
  Tensor new_weights(const Range& elements, const Tensor& room) const;

  const Tensor& weights() const { return weights_N_; }
  const Tensor& gradients() const { return gradients_N_; }

  const Tensor& moment1() const { return moment1_N_; }
  const Tensor& moment2() const { return moment2_N_; }
  // The weights themselves if fp32; int16: remainders of bf16 weights; or fp16.
  const Tensor& master() const { return master_N_; }
  void refresh_master(Stream& stream);  // call after the weights were set from outside
  // True if the master weights are a mere copy: offloaded state of fp32 weights.
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
