// Keys that trade time or host memory for device memory.
#pragma once

#include <array>
#include <string_view>

namespace weft::plan {

// Keys that both layout searches and savings change.
inline constexpr std::array<std::string_view, 14> kMemoryKeys{
    "model.recompute_granularity",
    "model.recompute_method",
    "model.recompute_num_layers",
    "model.recompute_modules",
    "model.fine_grained_activation_offloading",
    "model.offload_modules",
    "model.cuda_graph_impl",
    "model.cuda_graph_modules",
    "ddp.use_distributed_optimizer",
    "optimizer.use_distributed_optimizer",
    "optimizer.optimizer_cpu_offload",
    "optimizer.optimizer_offload_fraction",
    "optimizer.overlap_cpu_optimizer_d2h_h2d",
    "optimizer.use_precision_aware_optimizer"};

// Keys that only savings change; a layout leaves them as in the model.
inline constexpr std::array<std::string_view, 6> kKeysOfSavings{"runtime.recompute_under_overlap",
                                                                "model.cuda_graph_scope",
                                                                "optimizer.exp_avg_dtype",
                                                                "optimizer.exp_avg_sq_dtype",
                                                                "optimizer.main_grads_dtype",
                                                                "runtime.logits_chunk"};

}  // namespace weft::plan
