// List of the operations of kernels.h.
#pragma once

#include "weft/kernels/kernels.h"

// A device declares its functions from this list, in a namespace of its own
// (WEFT_DECLARE_OPERATION). It builds its table from the list as well (WEFT_OPERATION_OF_TABLE).
// The compiler names an operation of the wrong type, the linker a missing one.
#define WEFT_EACH_OPERATION(apply)                                                                 \
  apply(linear_forward) apply(linear_dgrad) apply(linear_wgrad) apply(grouped_linear_forward)      \
      apply(grouped_linear_dgrad) apply(grouped_linear_wgrad) apply(rms_norm_forward) apply(       \
          rms_norm_dgrad) apply(rms_norm_wgrad) apply(row_dots) apply(shared_norm_forward)         \
          apply(shared_norm_dgrad) apply(rotary_table) apply(rotary_forward) apply(rotary_dgrad)   \
              apply(norm_rotary_forward) apply(norm_rotary_dgrad) apply(norm_rotary_wgrad) apply(  \
                  latent_keys_forward) apply(latent_keys_dgrad) apply(attention_forward)           \
                  apply(attention_dgrad) apply(attention_merge) apply(accumulate_rows) apply(      \
                      swiglu_forward) apply(swiglu_dgrad) apply(weighted_swiglu_forward)           \
                      apply(weighted_swiglu_dgrad) apply(gate_forward) apply(gate_dgrad) apply(    \
                          embedding_forward) apply(embedding_wgrad) apply(cross_entropy_sums)      \
                          apply(cross_entropy_forward) apply(cross_entropy_dgrad) apply(           \
                              top_k_forward) apply(probabilities_of_choice) apply(top_k_dgrad)     \
                              apply(drop_over_capacity_forward) apply(drop_over_capacity_dgrad)    \
                                  apply(count_experts) apply(move_bias) apply(jitter) apply(       \
                                      random_logits) apply(balance_loss_forward)                   \
                                      apply(balance_loss_dgrad) apply(z_loss_forward) apply(       \
                                          z_loss_dgrad) apply(choose_shards) apply(sort_by_expert) \
                                          apply(sort_by_group) apply(count_by_group) apply(        \
                                              gather_choices) apply(sum_counts) apply(seal_counts) \
                                              apply(open_counts) apply(plan_hops)                  \
                                                  apply(gather_rows) apply(sum_rows)               \
                                                      apply(copy_rows) apply(add)                  \
                                                          apply(accumulate) apply(scale)           \
                                                              apply(zero) apply(fill) apply(copy)  \
                                                                  apply(squared_norm) apply(sum)   \
                                                                      apply(masters_in_half)       \
                                                                          apply(count_zeros)       \
                                                                              apply(adamw)

#define WEFT_DECLARE_OPERATION(name) decltype(::weft::kernels::name) name;
#define WEFT_OPERATION_OF_TABLE(name) .name = name,
