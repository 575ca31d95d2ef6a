#include "weft/schedule/anatomy.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/config/pipeline.h"
#include "weft/schedule/anatomy_bytes.h"

namespace weft::schedule {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Without expert parallelism nothing travels, and these pieces are local.
std::vector<PieceAnatomy> moe_layer(Lane ep) {
  using enum Piece;
  return {
      {.piece = Attention, .lane = Lane::Compute, .after = {}, .has_weight_gradient = true},
      {.piece = Route, .lane = Lane::Compute, .after = {Attention}, .has_weight_gradient = true},
      {.piece = Counts, .lane = ep, .after = {Route}, .has_input_gradient = false},
      {.piece = Permute, .lane = Lane::Compute, .after = {Route}},
      {.piece = Sizes, .lane = Lane::Host, .after = {Counts}, .has_input_gradient = false},
      {.piece = Dispatch, .lane = ep, .after = {Permute, Sizes}},
      {.piece = Experts, .lane = Lane::Compute, .after = {Dispatch}, .has_weight_gradient = true},
      {.piece = Combine, .lane = ep, .after = {Experts}},
      {.piece = Merge, .lane = Lane::Compute, .after = {Combine}},
  };
}

std::vector<PieceAnatomy> dense_layer() {
  using enum Piece;
  return {
      {.piece = Attention, .lane = Lane::Compute, .after = {}, .has_weight_gradient = true},
      {.piece = Mlp, .lane = Lane::Compute, .after = {Attention}, .has_weight_gradient = true},
  };
}

std::vector<Chunk> chunks_of(const config::ModelConfig& model, int pp_rank) {
  const config::Stages stages = config::stages_of(model);
  CHECK(stages.complaints.empty(), "stages: {}", fmt::join(stages.complaints, "; "));
  const int pp = static_cast<int>(model.pipeline_model_parallel_size);
  std::vector<Chunk> chunks;
  for (int stage = pp_rank; stage < std::ssize(stages.all); stage += pp) {
    const config::Stage& content = stages.all[at(stage)];
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

void declare_bytes(const config::ModelConfig& model, PieceAnatomy& piece) {
  piece.kept = kept_bytes(model, piece.piece);
  piece.sent_forward = sent_bytes(model, piece.piece, Direction::F);
  if (piece.has_input_gradient) piece.sent_backward = sent_bytes(model, piece.piece, Direction::D);
}

// What a chunk hands on to the next stage is sent, not kept.
void let_go_of_outputs(const config::ModelConfig& model, Anatomy& anatomy) {
  const Bytes stream = kept_bytes(model, Piece::Receive);
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

Anatomy describe(const config::ModelConfig& model, ReductionScope reductions, int pp_rank) {
  Anatomy anatomy;
  const Lane ep = model.expert_model_parallel_size > 1 ? Lane::Ep : Lane::Compute;
  for (std::int64_t layer = 0; layer < model.num_layers; ++layer) {
    anatomy.layers.push_back(model.is_moe_layer(layer) ? moe_layer(ep) : dense_layer());
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
    for (PieceAnatomy& piece : layer) declare_bytes(model, piece);
  }
  for (PieceAnatomy* piece : {&anatomy.embed, &anatomy.head, &anatomy.receive}) {
    declare_bytes(model, *piece);
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
