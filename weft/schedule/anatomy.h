// The anatomy of a model: which pieces a layer has, their lanes and dependencies, which directions
// they run in, what each keeps for the backward and how many bytes it sends. A function of the
// config.
//
// A pipeline rank holds chunks of layers, one for each of its stages. A chunk that is not the first
// gets its input by `receive`, and one that is not the last hands its output on by `send`;
// gradients go the other way. The `chunk` of these nodes is the stage's number in the whole
// pipeline: what `c1F3.send` sends is what `c2F3.receive` receives.
//
// A step ends with `tie` (tied embeddings: the two gradients are added), `reduce.dense` and
// `reduce.expert` (gradients summed over ranks), `norm` (this rank's sums of squares), `totals`
// (ranks exchange them), `clip` (the host learns the norm and judges it) and `optimizer`.
//
// From it follow the dependencies every order must respect (`required`), whatever the builder or
// pass.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/config/model_config.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// A number of bytes that is linear in the tokens of a micro-batch and in the rows its experts
// receive.
struct Bytes {
  std::int64_t fixed = 0;
  std::int64_t per_token = 0;
  std::int64_t per_row = 0;

  std::int64_t of(std::int64_t tokens, std::int64_t rows) const {
    return fixed + per_token * tokens + per_row * rows;
  }
};

struct PieceAnatomy {
  Piece piece = Piece::Attention;
  Lane lane = Lane::Compute;
  std::vector<Piece>
      after;  // pieces of the same layer whose forward this one needs; empty: the layer's input
  bool has_input_gradient = true;
  bool has_weight_gradient = false;
  Bytes kept = {};          // by its forward, for the backward
  Bytes sent_forward = {};  // to other ranks, a row that leaves this one
  Bytes sent_backward = {};
};

// One pipeline stage of a rank.
struct Chunk {
  int stage = 0;  // number in the whole pipeline
  int first_layer = 0;
  int layers = 0;  // may be none
  bool has_embed = false;
  bool has_head = false;

  int end_layer() const { return first_layer + layers; }
  // Embedding and head are the ends of the pipeline.
  bool receives() const { return !has_embed; }
  bool sends() const { return !has_head; }
};

// Tied embeddings: the head's gradient is added to the embedding's, on one rank or between two.
enum class Tie { None, Local, BetweenStages };

// Of one pipeline rank. Layers are those of the whole model, so that a layer's number is its index.
struct Anatomy {
  std::vector<std::vector<PieceAnatomy>>
      layers;  // pieces in forward order; the last is the layer's output
  PieceAnatomy embed;
  PieceAnatomy head;
  PieceAnatomy receive;       // what a chunk gets keeps until its first layer is done with it
  std::vector<Chunk> chunks;  // of this rank, ascending
  int pp = 1, pp_rank = 0;
  int slices = 1;  // of a MoE layer's tokens
  Tie tie = Tie::None;
  bool has_dense_reduction = false;   // dense gradients are summed over more than one rank
  bool has_expert_reduction = false;  // expert gradients are
  bool has_totals = false;            // there is more than one rank to sum the gradient norm over
};

enum class Sums { None, OverRanks };

struct ReductionScope {
  Sums dense = Sums::None;
  Sums expert = Sums::None;
  Sums totals = Sums::None;
};

Anatomy describe(const config::ModelConfig& model, ReductionScope reductions, int pp_rank = 0);

// The chunk of this rank that holds a layer, and the one that is a stage.
const Chunk& chunk_of_layer(const Anatomy& anatomy, int layer);
const Chunk& chunk_of_stage(const Anatomy& anatomy, int stage);
// The chunk a node of a micro-batch belongs to.
const Chunk& chunk_of(const Anatomy& anatomy, const Node& node);

enum class Pass { Training, ForwardOnly };

// The nodes that must be over before `node` starts, derived from the anatomy alone. Some of them
// follow from others; `micro_batches` is the number in a step.
std::vector<Node> required(const Anatomy& anatomy, const Node& node, int micro_batches, Pass pass);

// Every node of one training step, or of one forward pass (which ends with `totals`), in no
// particular order.
std::vector<Node> all_nodes(const Anatomy& anatomy, int micro_batches, Pass pass);

// The lane of a node.
Lane lane_of(const Anatomy& anatomy, const Node& node);

}  // namespace weft::schedule
