// The keys by which a run trades time or host memory for memory of its device.
#pragma once

#include <array>
#include <string_view>

namespace weft::plan {

// Layouts that are searched and savings that are looked for turn all of these.
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

// And savings alone: a layout leaves them as the model has them.
inline constexpr std::array<std::string_view, 6> kKeysOfSavings{"runtime.recompute_under_overlap",
                                                                "model.cuda_graph_scope",
                                                                "optimizer.exp_avg_dtype",
                                                                "optimizer.exp_avg_sq_dtype",
                                                                "optimizer.main_grads_dtype",
                                                                "runtime.logits_chunk"};

}  // namespace weft::plan
