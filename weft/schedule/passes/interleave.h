// The interleaved order (comm_overlap.overlap_moe_expert_parallel_comm): a forward turn and the
// backward turn after it, of another micro-batch, become one, layer by layer, so that dispatch and
// combine of the one travel under the compute of the other.
//
// Dispatches beside experts, as the reference has it:
//
//   ep       b.combine.D | f.counts f.dispatch.F  b.dispatch.D        | f.combine.F
//   compute  f.attention f.route f.permute | b.experts.D b.experts.W  f.experts | b.attention.D ...
//   host                              (f.sizes: after b.experts is queued, before f.dispatch)
//
// Dispatches beside attention, where it outweighs the experts:
//
//   ep       b.dispatch.D         | f.counts f.dispatch.F  | b.combine.D | f.combine.F
//   compute  f.attention f.route f.permute | b.attention.D | f.experts   | b.experts.D b.experts.W
//   host                              (f.sizes: after b.attention is queued, before f.dispatch)
//
// There the backward's first combine travels beside the head's weight gradient, where that is
// delayed; else beside the forward's first attention, and the dispatch after it beside less.
//
// Slices of tokens stay together: all dispatches of a layer, all of its experts, all combines; each
// waits for its own slice alone, so that they overlap one another as well.
//
// The first layer of the forward meets the last of the backward, and so on; what is left of the
// longer turn runs alone. The gradient of the next layer's merge is issued before the forward's
// merge, so that its combine follows on the wire without a gap.
#pragma once

#include "weft/config/model_config.h"
#include "weft/schedule/anatomy.h"
#include "weft/schedule/builders/turns.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Late: b.attention covers f.combine. Early (ep_overlap_early_attn_memory_release): it runs before
// f.experts, which frees its activations before the experts' are needed, and f.combine has no
// cover.
enum class AttentionRelease { Late, Early };

// Beside whose compute the dispatches of both directions travel, and the combines beside the
// other's. Beside attention it is released early in any case.
enum class DispatchBeside { Experts, Attention };

// What the first combine of a backward travels beside, where its dispatch travels beside attention.
enum class FirstCombine { BesideAttention, BesideHead };

// By FLOPs, of all layers with experts; the shared experts run with attention. Each exchange has
// one of four computations to run beside it: attention's two, or those of the experts. Beside
// experts the two dispatches follow each other, with the row counts on the way between, so that
// they need the larger share.
DispatchBeside dispatch_beside(const config::ModelConfig& model);

// Over the plain order of a shape whose warm-up is one longer, or of DualPipeV: two turns of one
// round (see turns.h) become one. Warm-up and what is left at the end stay as they are: a forward
// of the warm-up beside a backward could wait for a stage that waits for it.
Graph interleave_turns(const Graph& graph,
                       const Anatomy& anatomy,
                       const PipelineShape& shape,
                       DispatchBeside beside,
                       AttentionRelease release,
                       FirstCombine first_combine);

}  // namespace weft::schedule
