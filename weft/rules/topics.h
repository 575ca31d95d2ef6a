// Tables of the topics, one per file.
#pragma once

#include <span>

#include "weft/rules/rule.h"

namespace weft::rules {

std::span<const Rule> word_rules();
std::span<const Rule> input_rules();
std::span<const Rule> old_name_rules();
std::span<const Rule> hardware_rules();
std::span<const Rule> precision_rules();
std::span<const Rule> quantization_rules();
std::span<const Rule> model_rules();
std::span<const Rule> expert_rules();
std::span<const Rule> router_rules();
std::span<const Rule> capacity_rules();
std::span<const Rule> layout_rules();
std::span<const Rule> context_rules();
std::span<const Rule> pipeline_order_rules();
std::span<const Rule> pipeline_rules();
std::span<const Rule> dispatcher_rules();
std::span<const Rule> flex_backend_rules();
std::span<const Rule> recompute_rules();
std::span<const Rule> offload_rules();
std::span<const Rule> graph_rules();
std::span<const Rule> graph_scope_rules();
std::span<const Rule> tensor_overlap_rules();
std::span<const Rule> sharding_rules();
std::span<const Rule> optimizer_state_rules();
std::span<const Rule> data_parallel_rules();
std::span<const Rule> expert_overlap_rules();
std::span<const Rule> overlap_conflict_rules();
std::span<const Rule> delayed_wgrad_rules();
std::span<const Rule> token_slice_rules();
std::span<const Rule> dataset_rules();
std::span<const Rule> learning_rules();
std::span<const Rule> run_rules();
std::span<const Rule> fabric_rules();
std::span<const Rule> idle_rules();

}  // namespace weft::rules
