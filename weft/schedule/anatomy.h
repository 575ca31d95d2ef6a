// The anatomy of a model: which pieces a layer has, their lanes and dependencies, which directions
// they run in, what each keeps for the backward and how many bytes it sends. A function of the
// config.
//
// A pipeline rank holds chunks of layers, one for each of its stages. A chunk that is not the first
// gets its input by `receive`, and one that is not the last hands its output on by `send`;
// gradients go the other way; but where a rank holds two stages in a row, the turn of a V, the one
// takes over from the other. The `chunk` of these nodes is the stage's number in the whole
// pipeline: what `c1F3.send` sends is what `c2F3.receive` receives.
//
// The tokens of a micro-batch can be cut into slices (`flow.slices`): then the pieces that bring
// rows to experts and back have a node for each slice, `3F7.dispatch#1`, and all others one. A
// slice is [T i / n, T (i + 1) / n) of the tokens.
//
// A part may run in steps (`steps`), each a node: `3F7.attention.core#2` reads what
// `3F7.attention.ring#2` brought. Steps of a part run in order, going back the other way round. A
// ring is at most two steps ahead of what reads it. Products that tensor-parallel ranks share may
// have steps too, of the tokens of one rank each (`3F7.mlp.fc1#1` reads what `3F7.mlp.gather#1`
// brought, `3F7.mlp.scatter#0` sends what `3F7.mlp.fc2#0` made); the step of the rank's own tokens
// has no exchange.
//
// A piece is one node until a pass splits it into its parts (passes/parts.h); always split are the
// shared experts, and a piece whose parts are on several lanes: under tensor parallelism `gather`
// and `scatter` exchange tokens on the tp lane. Where a pass has a piece recomputed
// (passes/recompute.h), it has a node of direction R as well; where what it made waits in the
// host's memory (passes/offload.h), nodes of directions O and I, each way on a copy lane of its
// own.
//
// A step ends with `tie` (tied embeddings: the two gradients are added), `reduce.dense` and
// `reduce.expert` (gradients summed over ranks), `reduce.copied` (those of weights that several
// tensor-parallel ranks hold, summed over these), `norm` (this rank's sums of squares), `totals`
// (ranks exchange them), `clip` (the host learns the norm and judges it), `optimizer`, and where
// ranks share its work, `gather.dense` and `gather.expert` (every rank learns all new weights).
// Reductions and gathers have a node for each bucket of the gradients, `reduce.dense#2`; a pass may
// have them early (passes/data_parallel.h), gathers at the start of the next step. Around a sum of
// gradients that travel in bf16 stand `narrow.dense` and `widen.dense`. Where checkpoints are
// written beside the run, a step begins with `snapshot` (passes/snapshot.h), which `optimizer`
// waits for. Where optimizer state lies in host memory (passes/offloaded_optimizer.h), `optimizer`
// is of the rest of it, and beside it `download.dense#i` brings gradients to the host,
// `update.dense#i` changes state and weights there, and `upload.dense#i` brings the weights back.
//
// From it follow the dependencies every order must respect (`required`), whatever the builder or
// pass.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "weft/config/model_config.h"
#include "weft/derive/logits.h"
#include "weft/derive/memory/parameter_buffers.h"
#include "weft/derive/pipeline.h"
#include "weft/schedule/graph.h"
#include "weft/schedule/piece_table.h"

namespace weft::schedule {

// What a micro-batch, or a slice of it, brings a rank in one MoE layer.
struct Load {
  std::int64_t tokens = 0;   // the rank's own: 1 / tp of those it shares with its tp group
  std::int64_t rows = 0;     // kept: for its experts; sent: that leave the rank
  std::int64_t copies = 0;   // as they arrive, where a token comes once for several experts
  std::int64_t passing = 0;  // that arrive to be fanned out in the node (hybridep)
  std::int64_t onward = 0;   // what that makes of them
};

// A number of bytes that is linear in a load.
struct Bytes {
  std::int64_t fixed = 0;
  std::int64_t per_token = 0;
  std::int64_t per_row = 0;
  std::int64_t per_copy = 0;
  std::int64_t per_passing = 0;
  std::int64_t per_onward = 0;

  std::int64_t of(const Load& load) const {
    return fixed + per_token * load.tokens + per_row * load.rows + per_copy * load.copies +
           per_passing * load.passing + per_onward * load.onward;
  }
  bool operator==(const Bytes&) const = default;
};

// A piece, or a part of one where the parts are nodes of their own.
struct PieceName {
  PieceName(Piece of, Part of_part = Part::None) : piece(of), part(of_part) {}

  Piece piece;
  Part part;

  bool operator==(const PieceName&) const = default;
};

// Numbers of the nodes of a part that runs in steps: an exchange, or what computes beside it.
struct Steps {
  Part exchange = Part::Ring;
  int first = 0, count = 1;
  bool both_ways = true;  // gradients too; else those run at once

  int last() const { return first + count - 1; }
  bool has(int step) const { return step >= first && step <= last(); }
};

struct PieceAnatomy {
  Piece piece = Piece::Attention;
  Part part = Part::None;
  Lane lane = Lane::Compute;
  std::vector<PieceName>
      after;  // pieces of the same layer whose forward this one needs; empty: the layer's input
  std::optional<Steps> steps = std::nullopt;
  Bytes kept = {};    // by its forward, for the backward; of an exchange in steps, by each
  Bytes output = {};  // of it, what the next piece reads as its input
  Bytes remade = {};  // of it, what a recomputation drops and makes again
  // Of that, what goes to the host's memory where it is offloaded, unless all: the rest is made of
  // it when it is back.
  std::optional<Bytes> travels = std::nullopt;
  Bytes sent_forward = {};  // to other ranks, a row that leaves this one; of steps, by each
  Bytes sent_backward = {};
  std::optional<Bytes> sent_again = std::nullopt;  // where it runs again, unless as forward
  // What it becomes where a pass splits it (passes/parts.h), in forward order.
  std::vector<PieceAnatomy> parts = {};
  // It runs again before its input gradient. What it remakes, or hands on to the next layer, is
  // dropped after the forward; where that is nothing, it brings what others remake.
  bool is_recomputed = false;
  // What it could remake, or hands on to the next layer, is copied to the host's memory after the
  // forward and back before the backward.
  bool is_offloaded = false;

  // Whether some of what it made is not in the device's memory between forward and backward.
  bool is_away() const { return is_recomputed || is_offloaded; }
  // What that is, or would be.
  const Bytes& away() const { return remade != Bytes{} ? remade : output; }
  // Whether that is what the next layer has as its input.
  bool hands_on_what_is_away() const { return is_away() && remade == Bytes{} && output != Bytes{}; }
  // What of it a copy moves.
  const Bytes& copied() const { return travels ? *travels : away(); }
  bool is(const PieceName& name) const { return piece == name.piece && part == name.part; }
  // Whether its nodes of that direction are steps. A weight gradient is of all of them, and so is
  // what goes out and comes in; what a ring brings is the only thing that is made again step by
  // step.
  bool runs_in_steps(Direction direction) const {
    if (!steps) return false;
    if (direction == Direction::R) return part == Part::Ring;
    return direction == Direction::F || (direction == Direction::D && steps->both_ways);
  }
  bool is_exchange_in_steps() const { return steps && steps->exchange == part; }
  // What a part exchanges goes back too, where its piece begins the model.
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
  // How many times that one of its nodes sends.
  int sends_of_node(Direction direction) const {
    return steps && !runs_in_steps(direction) ? steps->count : 1;
  }
};

// A piece that has weights: of a layer, or the embedding or the head.
struct PieceAt {
  int layer = kNone;
  Piece piece = Piece::Embed;

  auto operator<=>(const PieceAt&) const = default;
};

// A parameter of a bucket, and who writes its gradient.
struct BucketItem {
  base::Range elements;  // of the bucket
  std::vector<PieceAt> users;
};

// Gradients that are summed together, and whose weights are gathered together.
struct BucketAnatomy {
  Part part = Part::Dense;  // or Expert
  int number = kNone;       // of several of its part
  int chunk = 0;            // of the rank, where buckets keep them apart
  std::int64_t elements = 0;
  std::int64_t shards = 1;  // ranks that each keep the optimizer's state of an equal part
  std::vector<PieceAt> pieces;
  bool has_table = false;  // the embedding's
  std::vector<BucketItem> items = {};

  // In front of the sum and behind it, where gradients travel in fewer bytes than they have.
  Node narrow() const { return {.piece = Piece::Narrow, .part = part, .slice = number}; }
  Node widen() const { return {.piece = Piece::Widen, .part = part, .slice = number}; }
  Node reduce() const { return {.piece = Piece::Reduce, .part = part, .slice = number}; }
  Node gather() const { return {.piece = Piece::Gather, .part = part, .slice = number}; }
};

// Parameters whose optimizer state lies in host memory and is changed there together: a part of
// what a rank keeps of a bucket.
struct OffloadedAnatomy {
  Part part = Part::Dense;  // or Expert
  int number = kNone;       // of several of its part
  int bucket = kNone;       // BucketAnatomy::number
  base::Range elements;     // of the rank's share of the bucket
  int slot = 0;             // of the memory between device and host

  Node download() const { return {.piece = Piece::Download, .part = part, .slice = number}; }
  Node update() const { return {.piece = Piece::Update, .part = part, .slice = number}; }
  Node upload() const { return {.piece = Piece::Upload, .part = part, .slice = number}; }
};

// One node of a step that belongs to no micro-batch.
struct StepNodeAnatomy {
  Node node;
  Lane lane = Lane::Compute;
  std::vector<Node> after = {};
  // Whose weight gradients it waits for: until the last micro-batch has written them.
  std::vector<PieceAt> gradients = {};
};

// One pipeline stage of a rank.
struct Chunk {
  int stage = 0;  // number in the whole pipeline
  int index = 0;  // among the rank's
  int first_layer = 0;
  int layers = 0;  // may be none
  bool has_embed = false;
  bool has_head = false;
  // Pipeline ranks of the stages before and after it, where they are others'; kNone: an end of the
  // pipeline, or the turn of a V.
  int from = kNone, to = kNone;
  // The turn of a V: the chunk before it, or after it, is this rank's too, and what it hands on is
  // handed over in memory.
  bool takes_over = false, hands_over = false;

  int end_layer() const { return first_layer + layers; }
  bool receives() const { return from != kNone; }
  bool sends() const { return to != kNone; }
};

// Tied embeddings: the head's gradient is added to the embedding's, on one rank or between two.
enum class Tie { None, Local, BetweenStages };

// How a rank comes to know how many rows it receives.
enum class RowCounts {
  Host,    // ranks exchange counts (`counts`) and the host reads them (`sizes`)
  Device,  // ranks exchange counts and nobody waits for them: buffers have room for a budget
  Static,  // every expert gets as many rows as any other: there is nothing to tell
};

// How tensor-parallel ranks exchange the tokens of a layer: all at once, or one rank's after the
// other's, so that they travel under the products that read or make them.
enum class TensorExchange { Whole, InSteps };

// When weight gradients run: behind their input gradients; put off, some of them or all; or all of
// them in turns of their own, so that what is kept for them counts.
enum class WeightGradients { Follow, Delayed, InTurns };

// How tokens travel.
struct TokenFlow {
  int slices = 1;
  config::RowBudget budget = config::RowBudget::AsConfigured;
  int machines = 1;    // that rows cross to before they are passed on; 1: one hop
  int replicas = 1;    // ranks with the same dense layers and other tokens: tp x dp x cp
  int tp = 1, cp = 1;  // ranks that share the tokens of a micro-batch
  int sequences = 1;   // of a micro-batch
  TensorExchange exchange = TensorExchange::Whole;
  WeightGradients weight_gradients = WeightGradients::Follow;
  derive::LogitsKept logits = derive::LogitsKept::Whole;
  bool leave_their_rank = false;  // experts are on several

  int sharers() const { return tp * cp; }
  // Whether rows that came from other ranks would be kept through several turns of others.
  bool would_be_held() const {
    return weight_gradients == WeightGradients::InTurns && leave_their_rank;
  }
};

// A part whose output goes to the host's memory, in so many of the layers that have it.
struct OffloadedPart {
  PieceName name;
  double share = 1;

  bool operator==(const OffloadedPart&) const = default;
};

// In how much detail a step is planned.
struct Detail {
  std::vector<Piece> split;           // into parts
  std::vector<PieceName> recomputed;  // pieces, or parts of a piece that is split
  // In how many layers from the first of each chunk on; else in all.
  std::optional<int> recomputed_layers = std::nullopt;
  // Of so many layers in a row of a chunk the first alone keeps its input.
  int recomputed_group = 1;
  std::vector<OffloadedPart> offloaded = {};  // parts of pieces that are split
};

// Of one pipeline rank. Layers are those of the whole model, so that a layer's number is its index.
struct Anatomy {
  std::vector<std::vector<PieceAnatomy>>
      layers;                             // pieces in forward order; the last is the layer's output
  std::vector<PieceAnatomy> embed, head;  // the same of the ends of the model
  PieceAnatomy receive;  // what a chunk gets keeps until its first layer is done with it
  PieceAnatomy send;
  std::vector<Chunk> chunks;  // of this rank, ascending
  derive::Pipeline pipeline;
  int pp_rank = 0;
  TokenFlow flow;
  RowCounts row_counts = RowCounts::Host;
  Tie tie = Tie::None;
  std::vector<BucketAnatomy> buckets;
  std::vector<OffloadedAnatomy> offloaded;  // in the order in which they are changed
  std::vector<StepNodeAnatomy> step_start;  // of a training step, ahead of who needs them
  std::vector<StepNodeAnatomy> step_end;    // of a training step, in order
  std::vector<StepNodeAnatomy>
      forward_end;  // of a forward-only step: every micro-batch has left the rank
  // Parts that are offloaded in some layers.
  std::vector<PieceName> offloaded_pieces;
  // By piece: those of step_start that bring its weights.
  std::map<PieceAt, std::vector<Node>> gathered_for;
};

enum class Sums { None, OverRanks };

struct ReductionScope {
  Sums dense = Sums::None;
  Sums expert = Sums::None;
  Sums totals = Sums::None;
  Sums copied = Sums::None;  // dense gradients that tensor-parallel ranks hold copies of
  // Of dense and expert gradients, where it is not what a rank has them in.
  config::Precision wire = config::Precision::Fp32;
  derive::BufferScheme buffers = {};
};

RowCounts row_counts_of(const config::ModelConfig& model, config::RowBudget budget);

Anatomy describe(const config::ModelConfig& model,
                 ReductionScope reductions,
                 int pp_rank = 0,
                 TokenFlow tokens = {},
                 derive::Placement placement = derive::Placement::Ring);

// The pieces among which a node of a micro-batch stands: those of its layer, or of its end of the
// model; none between pipeline stages.
const std::vector<PieceAnatomy>& pieces_beside(const Anatomy& anatomy, const Node& node);
// Every such list, to be changed.
std::vector<std::vector<PieceAnatomy>*> all_pieces(Anatomy& anatomy);

// The piece that a node of a micro-batch is of.
const PieceAnatomy& piece_of(const Anatomy& anatomy, const Node& node);
// Whether one piece of a layer needs the forward of another.
bool follows(const PieceAnatomy& later, const PieceName& name);
// The node of a piece, or the one that stands for all of its slices.
Node node_of(const PieceAnatomy& piece, int layer, Direction direction, int micro_batch);
int slices_of(const Anatomy& anatomy, const PieceAnatomy& piece);
// The nodes of a piece, ascending by slice; `place` has their layer or chunk, direction and
// micro-batch.
std::vector<Node> nodes_of(const Anatomy& anatomy, const PieceAnatomy& piece, const Node& place);
// What a node has of the load of its micro-batch and layer.
Load share_of(const Anatomy& anatomy, const Node& node, const Load& all);

// The bucket that a reduction or a gather is of.
const BucketAnatomy& bucket_of(const Anatomy& anatomy, const Node& node);
// What a download, an update or an upload is of.
const OffloadedAnatomy& offloaded_of(const Anatomy& anatomy, const Node& node);

// The chunk of this rank that holds a layer, and the one that is a stage.
const Chunk& chunk_of_layer(const Anatomy& anatomy, int layer);
const Chunk& chunk_of_stage(const Anatomy& anatomy, int stage);
// The chunk a node of a micro-batch belongs to.
const Chunk& chunk_of(const Anatomy& anatomy, const Node& node);

// A forward-only step is an evaluation: no gradients, no change of weights.
enum class StepKind { Training, ForwardOnly };

// The nodes that must be over before `node` starts, derived from the anatomy alone. Some of them
// follow from others; `micro_batches` is the number in a step.
std::vector<Node> required(const Anatomy& anatomy,
                           const Node& node,
                           int micro_batches,
                           StepKind kind);

// Whether a weight gradient is the first of its weights in a step, which assigns; all later ones
// add. It is that of the first micro-batch, and there of the first slice, in every order: those of
// a weight are required to run one after the other.
bool begins_gradient(const Node& node);

// Whether a weight gradient may run later than its input gradient: those of the router, norms,
// embedding and head stay, and that of the experts' second product where rows would be held for it.
bool may_wait(const TokenFlow& flow, const Node& node);
// Whether it is what makes room for a backward where a rank holds most: the second product of the
// last dense feed-forward of a chunk. Its turn is behind that backward;
// it runs ahead, and what it lets go of is as much as the backward needs beside what it frees.
bool makes_room(const Anatomy& anatomy, const Node& node);
// Whether it is that product, and the part with whose input gradient the rows can leave.
bool would_hold_rows(const TokenFlow& flow, const PieceName& name);
bool lets_rows_go(const PieceName& name);

// The forward nodes that read what a node makes that is recomputed or offloaded, itself first: when
// all of them have been issued, it is dropped. What the last piece of a layer makes is read by the
// next one of its chunk.
std::vector<Node> forward_readers(const Anatomy& anatomy, const Node& node);

// The layer whose forward of the same part lets go of what an offloaded part of `layer` made, and
// therefore waits for its copy: of those behind it in its chunk the next that is offloaded, else
// the last. None: nobody waits, and it is let go when the copy is issued.
std::optional<int> releasing_layer(const Anatomy& anatomy, int layer, const PieceName& name);
// Whose offloaded output (its forward node) the forward of a node lets go; the other way round.
std::optional<Node> released_by(const Anatomy& anatomy, const Node& forward);

// Every node of one training step, or of one forward-only step (which ends with `totals`), in no
// particular order.
std::vector<Node> all_nodes(const Anatomy& anatomy, int micro_batches, StepKind kind);

// The lane of a node.
Lane lane_of(const Anatomy& anatomy, const Node& node);

}  // namespace weft::schedule
