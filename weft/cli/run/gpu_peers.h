// PyTorch and Transformers on the same GPU, for `weft bench gpu`: their settings and their answers.
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

// Settings for bench/peers/torch_kernels.py.
base::Json torch_settings(const std::vector<measure::GroupedProduct>& products,
                          const std::vector<measure::AttentionCase>& attention,
                          int rounds);
// Settings for bench/peers/transformers_step.py. Losses are per sequence.
base::Json transformers_settings(const measure::DeviceStep& step,
                                 std::int64_t sequence_length,
                                 int rounds);

// JSON printed by a script of bench/peers. nullopt: `failures` has the reason.
std::optional<base::Json> ask_peer(const std::string& script,
                                   const std::vector<std::string>& arguments,
                                   const ChildOptions& options,
                                   std::vector<std::string>& failures);

struct PeerTime {
  std::string name;  // "PyTorch 2.11.0 grouped_mm"
  double seconds = 0;
};

// Time in an answer of torch_kernels.py. `direction`: forward, dgrad or wgrad.
std::optional<PeerTime> product_time(const base::Json& answer,
                                     std::size_t product,
                                     const std::string& direction);
// Time of cuDNN if it supports the shape, otherwise of the fastest backend. `direction`: forward or
// backward. PyTorch cannot request a deterministic cuDNN backward: there it is the fastest
// deterministic backend. A forward is always deterministic.
std::optional<PeerTime> attention_time(const base::Json& answer,
                                       std::size_t attention,
                                       tensor::Deterministic deterministic,
                                       const std::string& direction);
// Times in an answer of transformers_step.py; SystemError if invalid.
StepPeer step_peer_of(const base::Json& answer, const measure::DeviceStep& step);

}  // namespace weft::cli
