// Anatomy of a model: the pieces of each layer, with their lanes, dependencies, directions, bytes
// kept for the backward, and bytes sent. A function of the config.
//
// A pipeline rank holds one chunk of layers per stage. A chunk gets its input by `receive` and
// sends its output by `send`, except at the ends of the pipeline. Gradients go the other way. If a
// rank holds two consecutive stages, the turn of a V, it passes data in memory instead. The `chunk`
// of these nodes is the stage's number in the whole pipeline: `c2F3.receive` receives from
// `c1F3.send`.
//
// The tokens of a micro-batch can be cut into slices (`flow.slices`). Pieces that move rows to
// experts and back then have a node per slice, `3F7.dispatch#1`; all others have one node. Slice i
// is tokens [T i / n, T (i + 1) / n).
//
// A part may run in steps (`steps`), one node each: `3F7.attention.core#2` reads the output of
// `3F7.attention.ring#2`. Steps run in order, and in reverse order in the backward. A ring is at
// most two steps ahead of its reader. Products of tensor-parallel ranks may also have steps, one
// per rank's tokens: `3F7.mlp.fc1#1` reads the output of `3F7.mlp.gather#1`, and
// `3F7.mlp.scatter#0` sends the output of `3F7.mlp.fc2#0`. The step of the rank's own tokens has no
// exchange.
//
// A piece is one node until a pass splits it into its parts (passes/parts.h). Shared experts, and
// pieces with parts on several lanes, are always split: under tensor parallelism `gather` and
// `scatter` exchange tokens on the tp lane. A recomputed piece (passes/recompute.h) also has a node
// of direction R. An offloaded one (passes/offload.h) has nodes of directions O and I, each on a
// copy lane of its own.
//
// A step ends with these nodes:
//   tie                           adds both gradients of tied embeddings
//   reduce.dense, reduce.expert   sum gradients over ranks
//   reduce.copied                 sums gradients of weights that several tensor-parallel ranks hold
//   norm, totals                  this rank's sums of squares; their exchange
//   clip                          the host checks the norm
//   optimizer                     updates the weights
//   gather.dense, gather.expert   distribute new weights if ranks share the optimizer's work
//
// Reductions and gathers have one node per gradient bucket, `reduce.dense#2`. A pass may move
// reductions into the backward, and gathers to the start of the next step (passes/data_parallel.h).
// `narrow.dense` and `widen.dense` enclose the reduction of gradients that travel in bf16. With
// checkpoints written during the run, a step begins with `snapshot` (passes/snapshot.h), which
// `optimizer` waits for.
//
// With offloaded optimizer state (passes/offloaded_optimizer.h), `optimizer` updates the rest. For
// the offloaded part, `download.dense#i` copies gradients to the host. `update.dense#i` updates
// state and weights there; `upload.dense#i` copies the weights back.
//
// The anatomy implies the dependencies that every order must respect (`required`), for any builder
// or pass.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "weft/block/block.h"
#include "weft/config/model_config.h"
#include "weft/derive/logits.h"
#include "weft/derive/memory/parameter_buffers.h"
#include "weft/derive/pipeline.h"
#include "weft/schedule/graph.h"
#include "weft/schedule/piece_table.h"

namespace weft::schedule {

using block::Bytes;
using block::Load;

// Name of a piece, or of a part if the piece is split.
struct PieceName {
  PieceName(Piece of, Part of_part = Part::None) : piece(of), part(of_part) {}

  Piece piece;
  Part part;

  bool operator==(const PieceName&) const = default;
};

// Node numbers of a part that runs in steps: an exchange, or the compute beside it.
struct Steps {
  Part exchange = Part::Ring;
  int first = 0, count = 1;
  bool both_ways = true;  // false: gradients are exchanged at once

  int last() const { return first + count - 1; }
  bool has(int step) const { return step >= first && step <= last(); }
};

struct PieceAnatomy {
  Piece piece = Piece::Attention;
  Part part = Part::None;
  Lane lane = Lane::Compute;
  std::vector<PieceName>
      after;  // pieces of the layer whose forward this one needs; empty: the layer's input
  std::optional<Steps> steps = std::nullopt;
  Bytes kept = {};    // by its forward, for the backward; of a stepwise exchange, per step
  Bytes output = {};  // part of `kept` that the next piece reads as input
  Bytes remade = {};  // part of `kept` that recomputation drops and makes again
  // Part of `remade` that an offload copies to the host; nullopt: all of it. The rest is recomputed
  // from it after its return.
  std::optional<Bytes> travels = std::nullopt;
  Bytes sent_forward = {};  // to other ranks, per row that leaves the rank; of steps, per step
  Bytes sent_backward = {};
  std::optional<Bytes> sent_again = std::nullopt;  // when recomputed; nullopt: as in the forward
  // Parts after a split (passes/parts.h), in forward order.
  std::vector<PieceAnatomy> parts = {};
  // Recomputed before its input gradient. The forward drops `remade`, or the output that the next
  // layer reads. If both are 0, the piece runs again to feed other recomputed pieces.
  bool is_recomputed = false;
  // Offloaded: `remade`, or the next layer's input, is copied to host memory after the forward, and
  // back before the backward.
  bool is_offloaded = false;

  // True if some of its output is absent from device memory between forward and backward.
  bool is_recomputed_or_offloaded() const { return is_recomputed || is_offloaded; }
  // Bytes absent between forward and backward, if recomputed or offloaded.
  const Bytes& absent_bytes() const { return remade != Bytes{} ? remade : output; }
  // True if the absent bytes are the next layer's input.
  bool output_is_recomputed_or_offloaded() const {
    return is_recomputed_or_offloaded() && remade == Bytes{} && output != Bytes{};
  }
  // Bytes that an offload copies.
  const Bytes& offloaded_bytes() const { return travels ? *travels : absent_bytes(); }
  bool is(const PieceName& name) const { return piece == name.piece && part == name.part; }
  // True if nodes of that direction are steps. Weight gradients, O and I cover all steps; in a
  // recomputation, only a ring runs step by step.
  bool runs_in_steps(Direction direction) const {
    if (!steps) return false;
    if (direction == Direction::R) return part == Part::Ring;
    return direction == Direction::F || (direction == Direction::D && steps->both_ways);
  }
  bool is_exchange_in_steps() const { return steps && steps->exchange == part; }
  // An exchange has a gradient even if its piece begins the model.
  bool has_input_gradient() const {
    const bool goes_back =
        row_of(piece).has_input_gradient || row_of(part).members != Members::Rank;
    return goes_back && row_of(part).has_input_gradient;
  }
  bool has_weight_gradient() const {
    return row_of(piece).weights != Weights::None && row_of(part).has_weights;
  }
  const Bytes& sent(Direction direction) const {
    if (direction == Direction::R && sent_again) return *sent_again;
    return direction == Direction::D ? sent_backward : sent_forward;
  }
  // Number of sends of one node.
  int sends_of_node(Direction direction) const {
    return steps && !runs_in_steps(direction) ? steps->count : 1;
  }
};

// Piece with weights: of a layer, or the embedding or the head.
struct PieceAt {
  int layer = kNone;
  Piece piece = Piece::Embed;

  auto operator<=>(const PieceAt&) const = default;
};

// Parameter of a bucket, with the pieces that write its gradient.
struct BucketItem {
  base::Range elements;  // relative to the bucket
  std::vector<PieceAt> users;
};

// Bucket: gradients that are reduced together, and whose weights are gathered together.
struct BucketAnatomy {
  Part part = Part::Dense;  // Dense or Expert
  int number = kNone;       // kNone: the only one of its part
  int chunk = 0;            // chunk of the rank, if buckets are separate per chunk
  std::int64_t elements = 0;
  std::int64_t shards = 1;  // ranks that each keep the optimizer state of an equal part
  std::vector<PieceAt> pieces;
  bool has_table = false;  // contains the embedding's table
  std::vector<BucketItem> items = {};

  // Before and after the reduction, if gradients travel in a narrower type.
  Node narrow() const { return {.piece = Piece::Narrow, .part = part, .slice = number}; }
  Node widen() const { return {.piece = Piece::Widen, .part = part, .slice = number}; }
  Node reduce() const { return {.piece = Piece::Reduce, .part = part, .slice = number}; }
  Node gather() const { return {.piece = Piece::Gather, .part = part, .slice = number}; }
};

// Parameters with optimizer state in host memory that are updated together: part of a rank's share
// of a bucket.
struct OffloadedAnatomy {
  Part part = Part::Dense;  // Dense or Expert
  int number = kNone;       // kNone: the only one of its part
  int bucket = kNone;       // BucketAnatomy::number
  base::Range elements;     // relative to the rank's share of the bucket
  int slot = 0;             // buffer slot between device and host

  Node download() const { return {.piece = Piece::Download, .part = part, .slice = number}; }
  Node update() const { return {.piece = Piece::Update, .part = part, .slice = number}; }
  Node upload() const { return {.piece = Piece::Upload, .part = part, .slice = number}; }
};

// Node of a step that belongs to no micro-batch.
struct StepNodeAnatomy {
  Node node;
  Lane lane = Lane::Compute;
  std::vector<Node> after = {};
  // Pieces whose last weight gradient of the step the node waits for.
  std::vector<PieceAt> gradients = {};
};

// Pipeline stage of a rank.
struct Chunk {
  int stage = 0;  // number in the whole pipeline
  int index = 0;  // index within the rank
  int first_layer = 0;
  int layers = 0;  // may be 0
  bool has_embed = false;
  bool has_head = false;
  // Pipeline ranks of the previous and next stage; kNone: an end of the pipeline, or the turn of a
  // V.
  int from = kNone, to = kNone;
  // Turn of a V: the previous or next chunk is on this rank too, and data is passed in memory.
  bool input_stays_on_rank = false, output_stays_on_rank = false;

  int end_layer() const { return first_layer + layers; }
  bool receives() const { return from != kNone; }
  bool sends() const { return to != kNone; }
};

// Tied embeddings: the head's gradient is added to the embedding's, on one rank or between two
// stages.
enum class Tie { None, Local, BetweenStages };

// How a rank learns the number of rows that it receives.
enum class RowCounts {
  Host,    // ranks exchange counts (`counts`), and the host reads them (`sizes`)
  Device,  // ranks exchange counts, and the host does not wait: buffers have a budget
  Static,  // every expert gets a fixed number of rows: no exchange of counts
};

// Exchange of tokens between tensor-parallel ranks. InSteps: one rank's tokens after another's, so
// that they travel under the products that read or make them.
enum class TensorExchange { Whole, InSteps };

// Time of weight gradients. Follow: after their input gradients. Delayed: some or all run later.
// InTurns: all run in turns of their own, so the memory held for them matters.
enum class WeightGradients { Follow, Delayed, InTurns };

// Routes of the tokens, and sizes of the groups that share them.
struct TokenFlow {
  int slices = 1;
  config::RowBudget budget = config::RowBudget::AsConfigured;
  int machines = 1;    // machines that rows cross to before they are forwarded; 1: one hop
  int replicas = 1;    // ranks with equal dense layers and other tokens: tp x dp x cp
  int tp = 1, cp = 1;  // ranks that share the tokens of a micro-batch
  int sequences = 1;   // sequences per micro-batch
  TensorExchange exchange = TensorExchange::Whole;
  WeightGradients weight_gradients = WeightGradients::Follow;
  derive::LogitsKept logits = derive::LogitsKept::Whole;
  bool leave_their_rank = false;  // experts are on several ranks

  int sharers() const { return tp * cp; }
  // True if rows from other ranks would be held over several turns.
  bool delay_holds_remote_rows() const {
    return weight_gradients == WeightGradients::InTurns && leave_their_rank;
  }
};

// Part whose output is offloaded, in a fraction of the layers that have it.
struct OffloadedPart {
  PieceName name;
  double share = 1;

  bool operator==(const OffloadedPart&) const = default;
};

// Level of detail of a step's plan.
struct Detail {
  std::vector<Piece> split;           // pieces to split into parts
  std::vector<PieceName> recomputed;  // pieces, or parts of split pieces
  // First layers of each chunk that recompute; nullopt: all.
  std::optional<int> recomputed_layers = std::nullopt;
  // Consecutive layers of a chunk that keep only the first layer's input.
  int recomputed_group = 1;
  std::vector<OffloadedPart> offloaded = {};  // parts of split pieces
};

// Anatomy of one pipeline rank. Layers are indexed as in the whole model.
struct Anatomy {
  std::vector<std::vector<PieceAnatomy>>
      layers;  // pieces in forward order; the last one makes the layer's output
  std::vector<PieceAnatomy> embed, head;  // pieces at the ends of the model, in forward order
  PieceAnatomy receive;  // keeps a chunk's input until its first layer no longer needs it
  PieceAnatomy send;
  std::vector<Chunk> chunks;  // chunks of this rank, ascending
  derive::Pipeline pipeline;
  int pp_rank = 0;
  TokenFlow flow;
  RowCounts row_counts = RowCounts::Host;
  Tie tie = Tie::None;
  std::vector<BucketAnatomy> buckets;
  std::vector<OffloadedAnatomy> offloaded;  // in order of update
  std::vector<StepNodeAnatomy> step_start;  // training step: before the nodes that need them
  std::vector<StepNodeAnatomy> step_end;    // training step: in order
  std::vector<StepNodeAnatomy>
      forward_end;  // forward-only step: after every micro-batch has left the rank
  // Parts that are offloaded in some layers.
  std::vector<PieceName> offloaded_pieces;
  // By piece: nodes of step_start that gather its weights.
  std::map<PieceAt, std::vector<Node>> gathered_for;
};

enum class Sums { None, OverRanks };

struct ReductionScope {
  Sums dense = Sums::None;
  Sums expert = Sums::None;
  Sums totals = Sums::None;
  Sums copied = Sums::None;  // dense gradients that several tensor-parallel ranks hold
  // Dtype of dense and expert gradients in flight; Fp32: not narrowed.
  base::DType wire = base::DType::F32;
  derive::BufferScheme buffers = {};
};

RowCounts row_counts_of(const config::ModelConfig& model, config::RowBudget budget);

Anatomy describe(const config::ModelConfig& model,
                 ReductionScope reductions,
                 int pp_rank = 0,
                 TokenFlow tokens = {},
                 derive::Placement placement = derive::Placement::Ring);

// Pieces of the list that a node of a micro-batch belongs to: its layer's, or its end of the
// model's; empty for pipeline exchanges.
const std::vector<PieceAnatomy>& pieces_beside(const Anatomy& anatomy, const Node& node);
// All such lists, for modification.
std::vector<std::vector<PieceAnatomy>*> all_pieces(Anatomy& anatomy);

// Piece of a micro-batch's node.
const PieceAnatomy& piece_of(const Anatomy& anatomy, const Node& node);
// True if the piece needs the forward of the named one.
bool follows(const PieceAnatomy& later, const PieceName& name);
// Node of a piece; slice kNone: all of its slices.
Node node_of(const PieceAnatomy& piece, int layer, Direction direction, int micro_batch);
int slices_of(const Anatomy& anatomy, const PieceAnatomy& piece);
// Nodes of a piece, ascending by slice; `place` gives their layer or chunk, direction and
// micro-batch.
std::vector<Node> nodes_of(const Anatomy& anatomy, const PieceAnatomy& piece, const Node& place);
// Share of a node in the load of its micro-batch and layer.
Load share_of(const Anatomy& anatomy, const Node& node, const Load& all);

// Bucket of a reduction or a gather.
const BucketAnatomy& bucket_of(const Anatomy& anatomy, const Node& node);
// Offloaded parameters of a download, an update or an upload.
const OffloadedAnatomy& offloaded_of(const Anatomy& anatomy, const Node& node);

// Chunk of this rank that holds a layer, or that is a stage.
const Chunk& chunk_of_layer(const Anatomy& anatomy, int layer);
const Chunk& chunk_of_stage(const Anatomy& anatomy, int stage);
// Chunk of a micro-batch's node.
const Chunk& chunk_of(const Anatomy& anatomy, const Node& node);

// ForwardOnly: an evaluation, without gradients and updates.
enum class StepKind { Training, ForwardOnly };

}  // namespace weft::schedule
