#include "weft/schedule/anatomy.h"

#include <algorithm>
#include <map>
#include <utility>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/block/dispatch.h"
#include "weft/derive/blocks.h"
#include "weft/derive/context_sharing.h"
#include "weft/derive/layer_kind.h"
#include "weft/derive/pipeline.h"
#include "weft/schedule/blocks.h"
#include "weft/schedule/buckets.h"
#include "weft/schedule/passes/parts.h"
#include "weft/schedule/piece_nodes.h"
#include "weft/schedule/step_end.h"

namespace weft::schedule {
namespace {

using base::at;

// Properties that decide which pieces a MoE layer has, and their lanes.
struct MoeLayerKind {
  Lane ep = Lane::Compute;  // Compute: no expert parallelism, all rows are local
  Lane dp = Lane::Compute;  // Compute: no ranks with other tokens
  RowCounts counts = RowCounts::Host;
  bool counts_globally = false;  // a balancing loss counts the rows of all ranks
  // True if a balancing loss counts the rows of a micro-batch, or of its sequences, that several
  // ranks share.
  bool tallies = false;
  Lane sharers = Lane::Compute;
  bool has_shared_experts = false;
};

std::vector<PieceAnatomy> moe_layer(const MoeLayerKind& kind) {
  using enum Piece;
  using Names = std::vector<PieceName>;
  std::vector<PieceAnatomy> pieces;
  const auto add = [&](Piece piece, Lane lane, Names after) {
    pieces.push_back({.piece = piece, .lane = lane, .after = std::move(after)});
  };
  const bool has_sizes = kind.counts == RowCounts::Host;
  Names dispatched{Permute}, merged{Combine};
  add(Attention, Lane::Compute, {});
  add(Route, Lane::Compute, {Attention});
  if (kind.counts != RowCounts::Static) {
    add(Counts, kind.ep, {Route});
    dispatched.push_back(has_sizes ? Sizes : Counts);
  }
  if (kind.counts_globally) add(Balance, kind.dp, {Route});
  if (kind.tallies) add(Tally, kind.sharers, {Route});
  if (kind.has_shared_experts) {
    add(Shared, Lane::Compute, {Route});
    merged.push_back(Shared);
  }
  add(Permute, Lane::Compute, {Route});
  if (has_sizes) add(Sizes, Lane::Host, {Counts});
  add(Dispatch, kind.ep, dispatched);
  add(Experts, Lane::Compute, {Dispatch});
  add(Combine, kind.ep, {Experts});
  add(Merge, Lane::Compute, merged);
  return pieces;
}

std::vector<PieceAnatomy> dense_layer() {
  return {{.piece = Piece::Attention, .lane = Lane::Compute, .after = {}},
          {.piece = Piece::Mlp, .lane = Lane::Compute, .after = {Piece::Attention}}};
}

std::vector<Chunk> chunks_of(const config::ModelConfig& model,
                             const derive::Pipeline& pipeline,
                             int pp_rank) {
  const derive::Stages stages = derive::stages_of(model);
  CHECK(stages.complaints.empty(), "stages: {}", fmt::join(stages.complaints, "; "));
  const auto rank_of = [&](int stage) {
    return stage < 0 || stage >= pipeline.stages() ? kNone : pipeline.rank_of(stage);
  };
  std::vector<Chunk> chunks;
  for (const int stage : pipeline.stages_of(pp_rank)) {
    const derive::Stage& content = stages.all[at(stage)];
    Chunk chunk{.stage = stage,
                .index = static_cast<int>(chunks.size()),
                .first_layer = content.first_layer,
                .layers = content.layers,
                .has_embed = content.embedding,
                .has_head = content.loss,
                .from = rank_of(stage - 1),
                .to = rank_of(stage + 1)};
    chunk.input_stays_on_rank = chunk.from == pp_rank;
    chunk.output_stays_on_rank = chunk.to == pp_rank;
    if (chunk.input_stays_on_rank) chunk.from = kNone;
    if (chunk.output_stays_on_rank) chunk.to = kNone;
    chunks.push_back(chunk);
  }
  return chunks;
}

Tie tie_of(const config::ModelConfig& model, const std::vector<Chunk>& chunks) {
  if (!model.share_embeddings_and_output_weights) return Tie::None;
  const bool has_embed = chunks.front().has_embed, has_head = chunks.back().has_head;
  if (has_embed && has_head) return Tie::Local;
  return has_embed || has_head ? Tie::BetweenStages : Tie::None;
}

Lane lane_of_part(Part part, Lane of_piece) {
  if (row_of(part).members == Members::Tensor) return Lane::Tp;
  return row_of(part).members == Members::Context ? Lane::Cp : of_piece;
}

// One rank's keys after another's; the rank's own keys come first.
std::optional<Steps> ring_steps(const config::ModelConfig& model, int layer, Part part) {
  if (part != Part::Ring && part != Part::Core) return std::nullopt;
  const derive::AttentionSharing sharing = derive::attention_sharing(model, layer);
  if (sharing.keys != derive::KeyExchange::Ring) return std::nullopt;
  const int ranks = static_cast<int>(sharing.key_ranks);
  return part == Part::Ring ? Steps{Part::Ring, 1, ranks - 1} : Steps{Part::Ring, 0, ranks};
}

// True if a weight gradient covers the gradients that arrive for attention's projection
// (passes/tensor_overlap.h). It is that of a feed-forward's second product, at least as large as
// the projection.
bool has_weight_gradient_beside(const config::ModelConfig& model, int layer, Piece piece) {
  if (piece != Piece::Attention) return false;
  const std::int64_t projected = model.multi_latent_attention
                                     ? model.num_attention_heads * model.v_head_dim
                                     : model.query_width();
  const std::int64_t beside =
      model.is_moe_layer(layer) ? derive::shared_expert_width(model) : model.dense_width();
  return beside >= projected;
}

// One rank's tokens after another's. Gathered tokens begin with the rank's own, which need no
// transfer. Scattered tokens end with them, so that the last of the other ranks' travel meanwhile.
// Gradients travel unsplit if a sufficiently long weight gradient runs meanwhile: an unsplit
// product is faster.
std::optional<Steps> tensor_steps(const config::ModelConfig& model,
                                  const TokenFlow& flow,
                                  int layer,
                                  const PieceName& name) {
  const bool wait = flow.weight_gradients != WeightGradients::Follow;
  const bool scatters_back = wait || !has_weight_gradient_beside(model, layer, name.piece);
  const Part part = name.part;
  const bool reads = part == Part::Qkv || part == Part::Fc1;
  const bool makes = part == Part::Proj || part == Part::Fc2;
  if (reads) return Steps{Part::Gather, 0, flow.tp, wait};
  if (makes) return Steps{Part::Scatter, 0, flow.tp, scatters_back};
  if (part == Part::Gather) return Steps{part, 1, flow.tp - 1, wait};
  if (part == Part::Scatter) return Steps{part, 0, flow.tp - 1, scatters_back};
  return std::nullopt;
}

std::optional<Steps> steps_of(const config::ModelConfig& model,
                              const TokenFlow& flow,
                              int layer,
                              const PieceName& name) {
  const bool has_shared_products =
      name.piece == Piece::Attention || name.piece == Piece::Mlp || name.piece == Piece::Shared;
  if (has_shared_products && flow.exchange == TensorExchange::InSteps) {
    if (const std::optional<Steps> steps = tensor_steps(model, flow, layer, name)) return steps;
  }
  return ring_steps(model, layer, name.part);
}

// Divides sent bytes of tensor-parallel exchanges equally among their steps.
void cut_sent_bytes(PieceAnatomy& part) {
  if (part.lane != Lane::Tp || !part.steps) return;
  for (Bytes* sent : {&part.sent_forward, &part.sent_backward}) {
    sent->per_token /= part.steps->count;
  }
}

// True for latent attention without query expansion: queries are columns of the projection down.
bool has_whole_queries(const config::ModelConfig& model) {
  return model.multi_latent_attention && !model.q_lora_rank;
}

// Each part follows the one before it; the first follows the pieces before its piece. Gradients
// skip parts without an input gradient. A part after a stepwise exchange also follows the part
// before that, because one step has no exchange. Readers of gathered keys do too: their queries
// come from there.
void declare_parts(const config::ModelConfig& model,
                   const TokenFlow& flow,
                   int layer,
                   const block::Block& block,
                   PieceAnatomy& piece) {
  std::vector<PieceName> after = piece.after;
  for (const Part name : block.parts) {
    PieceAnatomy part{.piece = piece.piece,
                      .part = name,
                      .lane = lane_of_part(name, piece.lane),
                      .after = after,
                      .steps = steps_of(model, flow, layer, {piece.piece, name})};
    if (name == Part::Core && has_whole_queries(model)) {
      part.after.push_back({Piece::Attention, Part::Qkv});
    }
    // The shared experts' gate reads the input of their first product.
    if (name == Part::Gate) {
      part.after.insert(part.after.end(), piece.after.begin(), piece.after.end());
    }
    declare_bytes(block, part);
    cut_sent_bytes(part);
    const bool is_side_branch = part.is_exchange_in_steps() || name == Part::Keys;
    if (part.has_input_gradient() && !is_side_branch) after.clear();
    after.push_back({piece.piece, name});
    piece.parts.push_back(std::move(part));
  }
}

// A piece with parts on several lanes cannot be one node. Pieces are also split if some of their
// weight gradients wait for a turn and others do not. Norms stay, so that their inputs need not be
// kept; so do experts whose rows come from other ranks.
std::vector<Piece> always_split(Anatomy& anatomy) {
  std::vector<Piece> pieces;
  for (const std::vector<PieceAnatomy>* list : all_pieces(anatomy)) {
    for (const PieceAnatomy& piece : *list) {
      const bool has_other_lanes = std::ranges::any_of(piece.parts, [&](const PieceAnatomy& part) {
        return part.lane != piece.lane;
      });
      const bool has_norm = std::ranges::any_of(piece.parts, [](const PieceAnatomy& part) {
        return part.part == Part::Norm;
      });
      const bool parts_gradients = has_norm &&
                                   anatomy.flow.weight_gradients == WeightGradients::InTurns &&
                                   row_of(piece.piece).cover != Cover::Unsplit;
      const bool holds_rows =
          piece.piece == Piece::Experts && anatomy.flow.delay_holds_remote_rows();
      if (row_of(piece.piece).is_always_split || has_other_lanes || parts_gradients || holds_rows) {
        pieces.push_back(piece.piece);
      }
    }
  }
  return pieces;
}

// A chunk's output is sent to the next stage, not kept.
void remove_output(PieceAnatomy& piece) {
  piece.kept.per_token -= piece.output.per_token;
  piece.output = {};
  if (!piece.parts.empty()) remove_output(piece.parts.back());
}

void remove_sent_outputs(Anatomy& anatomy) {
  for (const Chunk& chunk : anatomy.chunks) {
    if (!chunk.sends()) continue;
    if (chunk.layers > 0) {
      remove_output(anatomy.layers[at(chunk.end_layer() - 1)].back());
    } else if (chunk.has_embed) {
      remove_output(anatomy.embed.back());
    }
  }
}

}  // namespace

RowCounts row_counts_of(const config::ModelConfig& model, config::RowBudget budget) {
  // The flex dispatcher sends a token once for several experts: the number of rows depends on the
  // routing, even if every expert has equal room.
  const bool flex = model.moe_token_dispatcher_type == config::Dispatcher::Flex;
  if (model.moe_pad_expert_input_to_capacity) return flex ? RowCounts::Device : RowCounts::Static;
  // A single rank has all rows, whatever the routing.
  const bool has_budget = flex && model.moe_expert_rank_capacity_factor && model.tokens_travel();
  return has_budget && budget == config::RowBudget::AsConfigured ? RowCounts::Device
                                                                 : RowCounts::Host;
}

Anatomy describe(const config::ModelConfig& model,
                 ReductionScope reductions,
                 int pp_rank,
                 TokenFlow tokens,
                 derive::Placement placement) {
  CHECK(tokens.slices >= 1, "{} slices of tokens", tokens.slices);
  Anatomy anatomy;
  anatomy.flow = tokens;
  anatomy.row_counts = row_counts_of(model, tokens.budget);
  const MoeLayerKind kind{
      .ep = model.tokens_travel() ? Lane::Ep : Lane::Compute,
      .dp = tokens.replicas > 1 ? Lane::Dp : Lane::Compute,
      .counts = anatomy.row_counts,
      .counts_globally = model.aux_loss_coeff(config::LoadBalancing::GlobalAuxLoss) != 0,
      .tallies = row_tally(model, tokens).runs > 0,
      .sharers = tokens.tp > 1 ? Lane::Tp : Lane::Cp,
      .has_shared_experts = derive::shared_expert_width(model) > 0};
  anatomy.embed = {{.piece = Piece::Embed, .lane = Lane::Compute, .after = {}}};
  anatomy.head = {{.piece = Piece::Head, .lane = Lane::Compute, .after = {}}};
  anatomy.receive = {.piece = Piece::Receive, .lane = Lane::PpReceivePrevious, .after = {}};
  anatomy.send = {.piece = Piece::Send, .lane = Lane::PpSendNext, .after = {}};
  const auto declare = [&](const block::Block& block, PieceAnatomy& piece, int layer) {
    declare_bytes(block, piece);
    declare_parts(model, anatomy.flow, layer, block, piece);
  };
  // Layers of one kind are declared once.
  std::map<std::pair<derive::LayerKind, block::AttentionSharing>, std::size_t> declared;
  for (int layer = 0; layer < model.num_layers; ++layer) {
    const std::pair like(derive::kind_of_layer(model, layer),
                         derive::attention_sharing(model, layer));
    const auto [known, is_new] = declared.emplace(like, anatomy.layers.size());
    if (!is_new) {
      anatomy.layers.push_back(anatomy.layers[known->second]);
      continue;
    }
    std::vector<PieceAnatomy> pieces = like.first.is_moe ? moe_layer(kind) : dense_layer();
    const std::vector<block::Block> blocks = blocks_of_layer(model, anatomy.flow, layer);
    for (PieceAnatomy& piece : pieces) {
      declare(*std::ranges::find(blocks, piece.piece, &block::Block::piece), piece, layer);
    }
    anatomy.layers.push_back(std::move(pieces));
  }
  const block::Stream stream = derive::stream_of(model);
  declare(derive::embedding_block(model), anatomy.embed.front(), kNone);
  declare(head_block(model, anatomy.flow), anatomy.head.front(), kNone);
  declare_bytes(block::receive(stream), anatomy.receive);
  declare_bytes(block::send(stream), anatomy.send);
  anatomy.pipeline = derive::pipeline_of(model, placement);
  anatomy.pp_rank = pp_rank;
  anatomy.chunks = chunks_of(model, anatomy.pipeline, pp_rank);
  remove_sent_outputs(anatomy);
  anatomy.tie = tie_of(model, anatomy.chunks);
  anatomy.buckets =
      buckets_of(model, reductions.buffers, derive::holding_of(model, pp_rank, placement));
  anatomy.step_end = training_end(anatomy, reductions);
  anatomy.forward_end = forward_end(reductions);
  const std::vector<Piece> split = always_split(anatomy);
  return with_parts(std::move(anatomy), split);
}

std::vector<std::vector<PieceAnatomy>*> all_pieces(Anatomy& anatomy) {
  std::vector<std::vector<PieceAnatomy>*> all{&anatomy.embed, &anatomy.head};
  for (std::vector<PieceAnatomy>& layer : anatomy.layers) all.push_back(&layer);
  return all;
}

const std::vector<PieceAnatomy>& pieces_beside(const Anatomy& anatomy, const Node& node) {
  static const std::vector<PieceAnatomy> kNobody;
  if (is_exchange(node)) return kNobody;
  if (node.piece == Piece::Embed) return anatomy.embed;
  if (node.piece == Piece::Head) return anatomy.head;
  CHECK(node.layer >= 0 && at(node.layer) < anatomy.layers.size(), "no layer for {}", print(node));
  return anatomy.layers[at(node.layer)];
}

const PieceAnatomy& piece_of(const Anatomy& anatomy, const Node& node) {
  if (node.piece == anatomy.receive.piece) return anatomy.receive;
  if (node.piece == anatomy.send.piece) return anatomy.send;
  for (const PieceAnatomy& piece : pieces_beside(anatomy, node)) {
    if (piece.is({node.piece, node.part})) return piece;
  }
  UNREACHABLE("layer {} has no piece for {}", node.layer, print(node));
}

Node node_of(const PieceAnatomy& piece, int layer, Direction direction, int micro_batch) {
  return {.layer = layer,
          .direction = direction,
          .micro_batch = micro_batch,
          .piece = piece.piece,
          .part = piece.part};
}

int slices_of(const Anatomy& anatomy, const PieceAnatomy& piece) {
  return row_of(piece.piece).is_sliced ? anatomy.flow.slices : 1;
}

std::vector<Node> nodes_of(const Anatomy& anatomy, const PieceAnatomy& piece, const Node& place) {
  std::vector<Node> nodes;
  each_node_of(anatomy, piece, place, [&](const Node& node) { nodes.push_back(node); });
  return nodes;
}

Load share_of(const Anatomy& anatomy, const Node& node, const Load& all) {
  if (node.slice == kNone || !row_of(node.piece).is_sliced) return all;
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

const BucketAnatomy& bucket_of(const Anatomy& anatomy, const Node& node) {
  for (const BucketAnatomy& bucket : anatomy.buckets) {
    if (bucket.part == node.part && bucket.number == node.slice) return bucket;
  }
  UNREACHABLE("no bucket for {}", print(node));
}

const OffloadedAnatomy& offloaded_of(const Anatomy& anatomy, const Node& node) {
  for (const OffloadedAnatomy& offloaded : anatomy.offloaded) {
    if (offloaded.part == node.part && offloaded.number == node.slice) return offloaded;
  }
  UNREACHABLE("nothing is offloaded for {}", print(node));
}

const Chunk& chunk_of_layer(const Anatomy& anatomy, int layer) {
  for (const Chunk& chunk : anatomy.chunks) {
    if (layer >= chunk.first_layer && layer < chunk.end_layer()) return chunk;
  }
  UNREACHABLE("layer {} is not of pipeline rank {}", layer, anatomy.pp_rank);
}

const Chunk& chunk_of_stage(const Anatomy& anatomy, int stage) {
  const auto found = std::ranges::find(anatomy.chunks, stage, &Chunk::stage);
  CHECK(found != anatomy.chunks.end(),
        "stage {} is not of pipeline rank {}",
        stage,
        anatomy.pp_rank);
  return *found;
}

const Chunk& chunk_of(const Anatomy& anatomy, const Node& node) {
  if (node.chunk != kNone) return chunk_of_stage(anatomy, node.chunk);
  if (node.piece == Piece::Embed) return anatomy.chunks.front();
  if (node.piece == Piece::Head) return anatomy.chunks.back();
  return chunk_of_layer(anatomy, node.layer);
}

}  // namespace weft::schedule
