#include "weft/schedule/anatomy.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/derive/layer_kind.h"
#include "weft/derive/pipeline.h"
#include "weft/schedule/anatomy_bytes.h"

namespace weft::schedule {
namespace {

using base::at;

// What decides which pieces a MoE layer has, and where they run.
struct MoeLayerKind {
  Lane ep = Lane::Compute;  // without expert parallelism nothing travels, and all is local
  Lane dp = Lane::Compute;  // the same without other ranks' tokens
  RowCounts counts = RowCounts::Host;
  bool counts_globally = false;  // a balancing loss counts the rows of all ranks
  bool has_shared_experts = false;
};

std::vector<PieceAnatomy> moe_layer(const MoeLayerKind& kind) {
  using enum Piece;
  std::vector<PieceAnatomy> pieces{
      {.piece = Attention, .lane = Lane::Compute, .after = {}, .has_weight_gradient = true},
      {.piece = Route, .lane = Lane::Compute, .after = {Attention}, .has_weight_gradient = true}};
  std::vector<PieceName> dispatched{Permute}, merged{Combine};
  const bool has_sizes = kind.counts == RowCounts::Host;
  if (kind.counts != RowCounts::Static) {
    pieces.push_back(
        {.piece = Counts, .lane = kind.ep, .after = {Route}, .has_input_gradient = false});
    dispatched.push_back(has_sizes ? Sizes : Counts);
  }
  if (kind.counts_globally) {
    pieces.push_back(
        {.piece = Balance, .lane = kind.dp, .after = {Route}, .has_input_gradient = false});
  }
  if (kind.has_shared_experts) {
    pieces.push_back({.piece = Shared,
                      .part = Part::Fc1,
                      .lane = Lane::Compute,
                      .after = {Route},
                      .has_weight_gradient = true});
    pieces.push_back({.piece = Shared,
                      .part = Part::Fc2,
                      .lane = Lane::Compute,
                      .after = {{Shared, Part::Fc1}},
                      .has_weight_gradient = true});
    merged.emplace_back(Shared, Part::Fc2);
  }
  pieces.push_back({.piece = Permute, .lane = Lane::Compute, .after = {Route}, .is_sliced = true});
  if (has_sizes) {
    pieces.push_back(
        {.piece = Sizes, .lane = Lane::Host, .after = {Counts}, .has_input_gradient = false});
  }
  pieces.push_back({.piece = Dispatch, .lane = kind.ep, .after = dispatched, .is_sliced = true});
  pieces.push_back({.piece = Experts,
                    .lane = Lane::Compute,
                    .after = {Dispatch},
                    .has_weight_gradient = true,
                    .is_sliced = true});
  pieces.push_back({.piece = Combine, .lane = kind.ep, .after = {Experts}, .is_sliced = true});
  pieces.push_back({.piece = Merge, .lane = Lane::Compute, .after = merged});
  return pieces;
}

std::vector<PieceAnatomy> dense_layer() {
  using enum Piece;
  return {
      {.piece = Attention, .lane = Lane::Compute, .after = {}, .has_weight_gradient = true},
      {.piece = Mlp, .lane = Lane::Compute, .after = {Attention}, .has_weight_gradient = true},
  };
}

std::vector<Chunk> chunks_of(const config::ModelConfig& model, int pp_rank) {
  const derive::Stages stages = derive::stages_of(model);
  CHECK(stages.complaints.empty(), "stages: {}", fmt::join(stages.complaints, "; "));
  const int pp = static_cast<int>(model.pipeline_model_parallel_size);
  std::vector<Chunk> chunks;
  for (int stage = pp_rank; stage < std::ssize(stages.all); stage += pp) {
    const derive::Stage& content = stages.all[at(stage)];
    chunks.push_back({.stage = stage,
                      .first_layer = content.first_layer,
                      .layers = content.layers,
                      .has_embed = content.embedding,
                      .has_head = content.loss});
  }
  return chunks;
}

Tie tie_of(const config::ModelConfig& model, const std::vector<Chunk>& chunks) {
  if (!model.share_embeddings_and_output_weights) return Tie::None;
  if (model.pipeline_model_parallel_size == 1) return Tie::Local;
  const bool takes_part = chunks.front().has_embed || chunks.back().has_head;
  return takes_part ? Tie::BetweenStages : Tie::None;
}

void declare_bytes(const config::ModelConfig& model, const TokenFlow& flow, PieceAnatomy& piece) {
  piece.kept = kept_bytes(model, flow, {piece.piece, piece.part});
  piece.sent_forward = sent_bytes(model, flow, piece.piece, Direction::F);
  if (piece.has_input_gradient)
    piece.sent_backward = sent_bytes(model, flow, piece.piece, Direction::D);
}

// What a chunk hands on to the next stage is sent, not kept.
void let_go_of_outputs(const config::ModelConfig& model, Anatomy& anatomy) {
  const Bytes stream = kept_bytes(model, anatomy.flow, Piece::Receive);
  for (const Chunk& chunk : anatomy.chunks) {
    if (!chunk.sends()) continue;
    if (chunk.layers > 0) {
      anatomy.layers[at(chunk.end_layer() - 1)].back().kept.per_token -= stream.per_token;
    } else if (chunk.has_embed) {
      anatomy.embed.kept.per_token -= stream.per_token;
    }
  }
}

}  // namespace

RowCounts row_counts_of(const config::ModelConfig& model, RowBudget budget) {
  // The flex dispatcher sends a token once for several experts: how often depends on the routing,
  // even where every expert has the same room.
  const bool flex = model.moe_token_dispatcher_type == config::Dispatcher::Flex;
  if (model.moe_pad_expert_input_to_capacity) return flex ? RowCounts::Device : RowCounts::Static;
  // One rank has all rows, whatever they are.
  const bool has_budget =
      flex && model.moe_expert_rank_capacity_factor && model.expert_model_parallel_size > 1;
  return has_budget && budget == RowBudget::AsConfigured ? RowCounts::Device : RowCounts::Host;
}

Anatomy describe(const config::ModelConfig& model,
                 ReductionScope reductions,
                 int pp_rank,
                 TokenFlow tokens) {
  CHECK(tokens.slices >= 1, "{} slices of tokens", tokens.slices);
  Anatomy anatomy;
  anatomy.flow = tokens;
  anatomy.row_counts = row_counts_of(model, tokens.budget);
  const MoeLayerKind kind{
      .ep = model.expert_model_parallel_size > 1 ? Lane::Ep : Lane::Compute,
      .dp = tokens.replicas > 1 ? Lane::Dp : Lane::Compute,
      .counts = anatomy.row_counts,
      .counts_globally = model.aux_loss_coeff(config::LoadBalancing::GlobalAuxLoss) != 0,
      .has_shared_experts = derive::shared_expert_width(model) > 0};
  for (std::int64_t layer = 0; layer < model.num_layers; ++layer) {
    anatomy.layers.push_back(model.is_moe_layer(layer) ? moe_layer(kind) : dense_layer());
  }
  anatomy.embed = {.piece = Piece::Embed,
                   .lane = Lane::Compute,
                   .after = {},
                   .has_input_gradient = false,
                   .has_weight_gradient = true};
  anatomy.head = {.piece = Piece::Head,
                  .lane = Lane::Compute,
                  .after = {},
                  .has_input_gradient = true,
                  .has_weight_gradient = true};
  anatomy.receive = {.piece = Piece::Receive, .lane = Lane::PpReceivePrevious, .after = {}};
  for (std::vector<PieceAnatomy>& layer : anatomy.layers) {
    for (PieceAnatomy& piece : layer) declare_bytes(model, anatomy.flow, piece);
  }
  for (PieceAnatomy* piece : {&anatomy.embed, &anatomy.head, &anatomy.receive}) {
    declare_bytes(model, anatomy.flow, *piece);
  }
  anatomy.chunks = chunks_of(model, pp_rank);
  anatomy.pp = static_cast<int>(model.pipeline_model_parallel_size);
  anatomy.pp_rank = pp_rank;
  let_go_of_outputs(model, anatomy);
  anatomy.tie = tie_of(model, anatomy.chunks);
  anatomy.has_dense_reduction = reductions.dense == Sums::OverRanks;
  anatomy.has_expert_reduction = reductions.expert == Sums::OverRanks;
  anatomy.has_totals = reductions.totals == Sums::OverRanks;
  return anatomy;
}

const PieceAnatomy& piece_of(const Anatomy& anatomy, const Node& node) {
  if (node.piece == Piece::Embed) return anatomy.embed;
  if (node.piece == Piece::Head) return anatomy.head;
  CHECK(node.layer >= 0 && at(node.layer) < anatomy.layers.size(), "no layer for {}", print(node));
  for (const PieceAnatomy& piece : anatomy.layers[at(node.layer)]) {
    if (piece.piece == node.piece && piece.part == node.part) return piece;
  }
  UNREACHABLE("layer {} has no piece for {}", node.layer, print(node));
}

int slices_of(const Anatomy& anatomy, const PieceAnatomy& piece) {
  return piece.is_sliced ? anatomy.flow.slices : 1;
}

std::vector<Node> nodes_of(const Anatomy& anatomy, const PieceAnatomy& piece, const Node& place) {
  Node node = place;
  node.piece = piece.piece;
  node.part = piece.part;
  node.slice = kNone;
  const int slices = slices_of(anatomy, piece);
  if (slices == 1) return {node};
  std::vector<Node> nodes;
  for (node.slice = 0; node.slice < slices; ++node.slice) nodes.push_back(node);
  return nodes;
}

Load share_of(const Anatomy& anatomy, const Node& node, const Load& all) {
  if (node.slice == kNone) return all;
  const std::int64_t slices = anatomy.flow.slices;
  const auto share = [&](std::int64_t of) {
    return of * (node.slice + 1) / slices - of * node.slice / slices;
  };
  return {.tokens = share(all.tokens),
          .rows = share(all.rows),
          .copies = share(all.copies),
          .passing = share(all.passing),
          .onward = share(all.onward)};
}

const Chunk& chunk_of_layer(const Anatomy& anatomy, int layer) {
  for (const Chunk& chunk : anatomy.chunks) {
    if (layer >= chunk.first_layer && layer < chunk.end_layer()) return chunk;
  }
  UNREACHABLE("layer {} is not of pipeline rank {}", layer, anatomy.pp_rank);
}

const Chunk& chunk_of_stage(const Anatomy& anatomy, int stage) {
  const int index = stage / anatomy.pp;
  CHECK(stage >= 0 && stage % anatomy.pp == anatomy.pp_rank && at(index) < anatomy.chunks.size(),
        "stage {} is not of pipeline rank {}",
        stage,
        anatomy.pp_rank);
  return anatomy.chunks[at(index)];
}

const Chunk& chunk_of(const Anatomy& anatomy, const Node& node) {
  if (node.chunk != kNone) return chunk_of_stage(anatomy, node.chunk);
  if (node.piece == Piece::Embed) return anatomy.chunks.front();
  if (node.piece == Piece::Head) return anatomy.chunks.back();
  return chunk_of_layer(anatomy, node.layer);
}

}  // namespace weft::schedule
