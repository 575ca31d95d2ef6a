// PyTorch and Transformers on the same card, for `weft bench gpu`: what they are asked, and what
// their answers say.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/cli/bench/gpu_bench_report.h"
#include "weft/cli/run/child.h"
#include "weft/measure/device/device_attention.h"
#include "weft/measure/device/device_products.h"

namespace weft::cli {

// The settings of bench/peers/torch_kernels.py.
base::Json torch_settings(const std::vector<measure::GroupedProduct>& products,
                          const std::vector<measure::AttentionCase>& attention,
                          int rounds);
// Those of bench/peers/transformers_step.py. Losses are those of each sequence.
base::Json transformers_settings(const measure::DeviceStep& step,
                                 std::int64_t sequence_length,
                                 int rounds);

// The JSON that a script of bench/peers prints. Where there is none, `failures` says why.
std::optional<base::Json> ask_peer(const std::string& script,
                                   const std::vector<std::string>& arguments,
                                   const ChildOptions& options,
                                   std::vector<std::string>& failures);

struct PeerTime {
  std::string name;  // "PyTorch 2.11.0 grouped_mm"
  double seconds = 0;
};

// Of an answer of torch_kernels.py. `direction`: forward, dgrad or wgrad.
std::optional<PeerTime> product_time(const base::Json& answer,
                                     std::size_t product,
                                     const std::string& direction);
// cuDNN's, where it takes the shape, else the fastest backend's. `direction`: forward or backward.
// The backward of cuDNN has no way to ask it for the same bits twice by way of PyTorch: there it is
// the fastest backend that has. A forward has the same bits anyway.
std::optional<PeerTime> attention_time(const base::Json& answer,
                                       std::size_t attention,
                                       tensor::Deterministic deterministic,
                                       const std::string& direction);
// Of an answer of transformers_step.py; SystemError where it is not one.
StepPeer step_peer_of(const base::Json& answer, const measure::DeviceStep& step);

}  // namespace weft::cli
