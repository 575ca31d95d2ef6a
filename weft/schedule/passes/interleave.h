// Interleaved order (comm_overlap.overlap_moe_expert_parallel_comm). A forward turn and the
// following backward turn, of another micro-batch, are merged layer by layer: dispatch and combine
// of the one travel under compute of the other.
//
// Dispatches beside experts, as in the reference:
//
//   ep       b.combine.D | f.counts f.dispatch.F  b.dispatch.D        | f.combine.F
//   compute  f.attention f.route f.permute | b.experts.D b.experts.W  f.experts | b.attention.D ...
//   host                              (f.sizes: after b.experts is queued, before f.dispatch)
//
// Dispatches beside attention, if attention outweighs the experts:
//
//   ep       b.dispatch.D         | f.counts f.dispatch.F  | b.combine.D | f.combine.F
//   compute  f.attention f.route f.permute | b.attention.D | f.experts   | b.experts.D b.experts.W
//   host                              (f.sizes: after b.attention is queued, before f.dispatch)
//
// In the second form, the backward's first combine travels beside the head's weight gradient if
// that is delayed. Otherwise it travels beside the forward's first attention, and the following
// dispatch has less cover.
//
// Slices of tokens stay together: all dispatches of a layer, all its experts, all combines. Each
// waits for its own slice only, so they also overlap one another.
//
// The first layer of the forward is paired with the last of the backward, and so on; the rest of
// the longer turn runs alone. The gradient of the next layer's merge is issued before the forward's
// merge: its combine follows on the wire without a gap.
#pragma once

#include "weft/config/model_config.h"
#include "weft/schedule/anatomy.h"
#include "weft/schedule/builders/turns.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Late: b.attention covers f.combine. Early (ep_overlap_early_attn_memory_release): b.attention
// runs before f.experts and frees its activations before the experts need memory; f.combine then
// has no cover.
enum class AttentionRelease { Late, Early };

// Compute beside the dispatches of both directions; the combines travel beside the other one.
// Attention implies early release.
enum class DispatchBeside { Experts, Attention };

// Cover of a backward's first combine, if dispatches travel beside attention.
enum class FirstCombine { BesideAttention, BesideHead };

// Choice by FLOPs over all MoE layers; shared experts count with attention. Each exchange has one
// of four computations beside it: attention's two, or the experts' two. Beside experts, the two
// dispatches follow each other with the row counts between them, so they need the larger share.
DispatchBeside dispatch_beside(const config::ModelConfig& model);

// Applied to the plain order of a shape with one more warm-up forward, or to DualPipeV: merges two
// turns of one round (builders/turns.h). Warm-up and drain stay as they are: merging a warm-up
// forward with a backward could deadlock with another stage.
Graph interleave_turns(const Graph& graph,
                       const Anatomy& anatomy,
                       const PipelineShape& shape,
                       DispatchBeside beside,
                       AttentionRelease release,
                       FirstCombine first_combine);

}  // namespace weft::schedule
