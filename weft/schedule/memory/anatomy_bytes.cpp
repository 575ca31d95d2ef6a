// Kept and sent bytes of each piece. Tests compare these formulas with the engine's pool and
// communicators, to the byte.
#include "weft/schedule/memory/anatomy_bytes.h"

#include <algorithm>
#include <utility>

#include "weft/base/check.h"
#include "weft/derive/context_sharing.h"
#include "weft/derive/layer_kind.h"
#include "weft/schedule/memory/dispatch_bytes.h"
#include "weft/schedule/memory/element_bytes.h"
#include "weft/schedule/piece_parts.h"

namespace weft::schedule {
namespace {

// A norm keeps its output and one reciprocal deviation per token.
std::int64_t norm_bytes(const config::ModelConfig& model) {
  return model.hidden_size * element_bytes(model) + kFp32;
}

Bytes stream_bytes(const config::ModelConfig& model) {
  return {.per_token = model.hidden_size * element_bytes(model)};
}

Bytes sum(const Bytes& a, const Bytes& b) {
  return {.fixed = a.fixed + b.fixed,
          .per_token = a.per_token + b.per_token,
          .per_row = a.per_row + b.per_row,
          .per_copy = a.per_copy + b.per_copy,
          .per_passing = a.per_passing + b.per_passing,
          .per_onward = a.per_onward + b.per_onward};
}

PieceBytes keeps(const Bytes& bytes) { return {.kept = bytes}; }
PieceBytes remakes(const Bytes& bytes) { return {.kept = bytes, .remade = bytes}; }
PieceBytes hands_on(const Bytes& bytes) { return {.kept = bytes, .output = bytes}; }
// Output that later pieces of its layer read.
PieceBytes shows(const Bytes& bytes) { return {.kept = bytes, .output = bytes, .remade = bytes}; }

// Bytes by part of a piece.
using PartBytes = std::vector<std::pair<Part, PieceBytes>>;

// Bytes between gather and scatter, where a rank has all tokens of its tensor-parallel group;
// counted per own token.
Bytes of_group(const config::ModelConfig& model, std::int64_t per_token) {
  return {.per_token = model.tensor_model_parallel_size * per_token};
}

// A token's row goes to every other rank of the group, or comes from it, in either direction.
PieceBytes shares_stream(const config::ModelConfig& model, const Bytes& kept) {
  const Bytes sent{.per_token = (model.tensor_model_parallel_size - 1) * model.hidden_size *
                                element_bytes(model)};
  return {.kept = kept, .remade = kept, .sent_forward = sent, .sent_backward = sent};
}

PieceBytes gather_bytes(const config::ModelConfig& model) {
  return shares_stream(model, of_group(model, model.hidden_size * element_bytes(model)));
}
PieceBytes scatter_bytes(const config::ModelConfig& model) { return shares_stream(model, {}); }

// Output of the projection down.
std::int64_t latent_down_bytes(const config::ModelConfig& model) {
  const std::int64_t q = model.local_heads() * model.latent_head_dim();
  const std::int64_t kv = model.kv_lora_rank + model.qk_pos_emb_head_dim;
  return (model.q_lora_rank.value_or(q) + kv) * element_bytes(model);
}

// Normed compressed columns, expanded queries, keys and values.
std::int64_t expanded_bytes(const config::ModelConfig& model) {
  const std::int64_t b = element_bytes(model), heads = model.local_heads();
  const std::int64_t q = heads * model.latent_head_dim();
  const std::int64_t queries = model.q_lora_rank ? (*model.q_lora_rank + q) * b + kFp32 : 0;
  return queries + model.kv_lora_rank * b + kFp32 + (q + heads * model.v_head_dim) * b;
}

// Output of QKV alone.
std::int64_t projected_bytes(const config::ModelConfig& model) {
  return (model.local_query_width() + 2 * model.local_key_width()) * element_bytes(model);
}

std::int64_t qkv_bytes(const config::ModelConfig& model) {
  if (model.multi_latent_attention) return latent_down_bytes(model) + expanded_bytes(model);
  const std::int64_t b = element_bytes(model);
  const std::int64_t q = model.local_query_width(), k = model.local_key_width();
  const std::int64_t bytes = projected_bytes(model);
  switch (model.qk_layernorm) {
    case config::QkNorm::None:
      return bytes;
    case config::QkNorm::Head:
      return bytes + (q + k) * b + (model.local_heads() + model.local_query_groups()) * kFp32;
    case config::QkNorm::Projection:
      return bytes + (q + k) * b + 2 * kFp32;
  }
  UNREACHABLE("norm of queries and keys {}", static_cast<int>(model.qk_layernorm));
}

// A norm over the heads of several ranks is a separate part, after an exchange of sums: two numbers
// per token. Latent attention's expansion is a separate part too.
PartBytes qkv_parts(const config::ModelConfig& model,
                    const derive::AttentionSharing& sharing,
                    const Bytes& all) {
  if (model.multi_latent_attention) {
    const Bytes down = of_group(model, latent_down_bytes(model));
    const Bytes expanded{.per_token = all.per_token - down.per_token};
    return {{Part::Qkv, remakes(down)}, {Part::Expand, remakes(expanded)}};
  }
  const Bytes product = of_group(model, projected_bytes(model));
  if (!derive::norms_across_ranks(model)) {
    PieceBytes whole = remakes(all);
    // Norm and rotation are recomputed from the product after its return.
    const bool is_normed = model.qk_layernorm != config::QkNorm::None;
    if (is_normed && sharing.head_ranks == 1) whole.travels = product;
    return {{Part::Qkv, whole}};
  }
  const Bytes normed{.per_token = all.per_token - product.per_token};
  const Bytes sums{.per_token = 2 * (model.tensor_model_parallel_size - 1) * 2 * kFp32};
  return {{Part::Qkv, keeps(product)},
          {Part::Squares, {.sent_forward = sums, .sent_backward = sums}},
          {Part::Turn, keeps(normed)}};
}

// Widths of attention's inputs and output, per token.
struct AttendedWidths {
  std::int64_t queries = 0, keys_and_values = 0, output = 0;
};
AttendedWidths attended_widths(const config::ModelConfig& model) {
  const std::int64_t heads = model.local_heads(), head = model.latent_head_dim();
  if (model.multi_latent_attention) {
    return {heads * head, heads * (head + model.v_head_dim), heads * model.v_head_dim};
  }
  return {model.local_query_width(), 2 * model.local_key_width(), model.local_query_width()};
}

// Bytes of qkv besides attention's inputs: inputs of the norms' and expansions' gradients.
std::int64_t unattended_bytes(const config::ModelConfig& model) {
  const auto [q, x, o] = attended_widths(model);
  const std::int64_t b = element_bytes(model), whole = qkv_bytes(model);
  if (model.multi_latent_attention) return whole - (x + (model.q_lora_rank ? q : 0)) * b;
  return model.qk_layernorm == config::QkNorm::None ? 0 : whole - (q + x / 2) * b;
}

// With context parallelism, attention's inputs are kept by the part that makes its final form: qkv,
// or the exchange of heads.
std::int64_t shared_qkv_bytes(const config::ModelConfig& model,
                              const derive::AttentionSharing& sharing) {
  const auto [q, x, o] = attended_widths(model);
  const std::int64_t attended = (q + x) * element_bytes(model);
  return unattended_bytes(model) + (sharing.head_ranks > 1 ? 0 : attended);
}

// Bytes between qkv and proj. A ring keeps its keys until they are read. With exchanged heads, the
// projection reads a separate output.
PartBytes shared_attention_bytes(const config::ModelConfig& model,
                                 const derive::AttentionSharing& sharing) {
  const auto [q, x, o] = attended_widths(model);
  const std::int64_t b = element_bytes(model), heads = sharing.head_ranks;
  const std::int64_t attended = (q + x) * b, others = sharing.key_ranks - 1;
  const auto of_tokens = [&](std::int64_t bytes) { return of_group(model, bytes); };
  const auto to_other_heads = [&](std::int64_t bytes) {
    const Bytes sent = of_tokens(bytes / heads * (heads - 1));
    return PieceBytes{.sent_forward = sent, .sent_backward = sent};
  };
  const auto exchange = [&](std::int64_t come, std::int64_t sent, std::int64_t sent_back) {
    return PieceBytes{.kept = of_tokens(come),
                      .remade = of_tokens(come),
                      .sent_forward = of_tokens(sent),
                      .sent_backward = of_tokens(sent_back)};
  };
  return {{Part::Heads, to_other_heads(attended)},
          {Part::Arrange, remakes(of_tokens(attended))},
          {Part::Ring, exchange(x * b, x * b, x * b)},
          {Part::Keys, exchange((others + 1) * x * b, others * x * b, others * x * kFp32)},
          {Part::Core, remakes(of_tokens(o * b + model.local_heads() * kFp32))},
          {Part::Tokens, to_other_heads(o * b)},
          {Part::Proj, remakes(of_tokens(heads > 1 ? o * b : 0))}};
}

// Attention keeps its output and the logarithm of the sum of exponentials.
PartBytes attention_bytes(const config::ModelConfig& model, int layer) {
  const std::int64_t core =
      attended_widths(model).output * element_bytes(model) + model.local_heads() * kFp32;
  PartBytes parts{{Part::Norm, remakes({.per_token = norm_bytes(model)})},
                  {Part::Gather, gather_bytes(model)},
                  {Part::Scatter, scatter_bytes(model)}};
  const derive::AttentionSharing sharing = derive::attention_sharing(model, layer);
  const bool is_shared = sharing.is_shared();
  parts.emplace_back(Part::Add, shows(stream_bytes(model)));
  const std::int64_t qkv = is_shared ? shared_qkv_bytes(model, sharing) : qkv_bytes(model);
  const PartBytes rest = is_shared ? shared_attention_bytes(model, sharing)
                                   : PartBytes{{Part::Core, remakes(of_group(model, core))}};
  for (const PartBytes& more : {qkv_parts(model, sharing, of_group(model, qkv)), rest}) {
    parts.insert(parts.end(), more.begin(), more.end());
  }
  return parts;
}

// All tokens of the group times a share of the width: equal to a share of the tokens times all of
// it.
PartBytes mlp_bytes(const config::ModelConfig& model) {
  const std::int64_t width = model.dense_width() * element_bytes(model);
  return {{Part::Norm, remakes({.per_token = norm_bytes(model)})},
          {Part::Gather, gather_bytes(model)},
          {Part::Fc1, remakes({.per_token = 2 * width})},
          {Part::Act, remakes({.per_token = width})},
          {Part::Scatter, scatter_bytes(model)},
          {Part::Add, hands_on(stream_bytes(model))}};
}

// Logits and choice are recomputed; the dispatcher's layout stays.
PartBytes route_bytes(const config::ModelConfig& model, const TokenFlow& flow) {
  const std::int64_t experts = model.experts(), k = model.moe_router_topk;
  Bytes choice{.per_token = experts * kFp32 + k * (kFp32 + kInt32)};
  // The choice before slots are dropped.
  if (model.moe_expert_capacity_factor) choice.per_token += k * (kFp32 + kInt32);
  Bytes all = sum(choice, dispatch_kept_bytes(model, flow).route);
  // Row counts for a global loss.
  if (model.aux_loss_coeff(config::LoadBalancing::GlobalAuxLoss) != 0) {
    all.fixed += experts * kInt64;
  }
  all.fixed += tallied_runs(model, flow) * experts * kInt64;
  return {{Part::Norm, remakes({.per_token = norm_bytes(model)})},
          {Part::Choose, {.kept = all, .remade = choice}}};
}

// Input of the experts, whose size the dispatcher gives, with the rows that can be resent.
PartBytes experts_bytes(const config::ModelConfig& model, const TokenFlow& flow) {
  const std::int64_t width = model.expert_shard_width() * element_bytes(model);
  const Bytes counts{.fixed = model.local_experts() * kInt64};
  const DispatchKept dispatcher = dispatch_kept_bytes(model, flow);
  return {{Part::Arrange, {.kept = sum(counts, dispatcher.experts), .remade = dispatcher.rows}},
          {Part::Fc1, remakes({.per_row = 2 * width})},
          {Part::Act, remakes({.per_row = width})}};
}

// Bytes of summing every expert's rows over ranks with other tokens. Each rank sends all but its
// part, and its part's sum to every other rank. For unequal parts: the mean, rounded down.
std::int64_t summed_bytes(std::int64_t rows, std::int64_t ranks) {
  return 2 * (ranks - 1) * rows * kInt64 / ranks;
}

// FC1 keeps its output and the activation; a gate keeps its factor and its logit.
PartBytes shared_bytes(const config::ModelConfig& model) {
  const std::int64_t b = element_bytes(model);
  return {{Part::Gather, gather_bytes(model)},
          {Part::Fc1, remakes({.per_token = 3 * derive::shared_expert_width(model) * b})},
          {Part::Scatter, scatter_bytes(model)},
          {Part::Gate, keeps({.per_token = model.hidden_size * b + kFp32})}};
}

// The lookup covers all tokens of the group, until the scatter.
PartBytes embed_bytes(const config::ModelConfig& model) {
  const bool is_alone = model.tensor_model_parallel_size == 1;
  PieceBytes scatter = scatter_bytes(model);
  scatter.kept = scatter.output = stream_bytes(model);
  return {{Part::Lookup, is_alone ? hands_on(stream_bytes(model)) : keeps({})},
          {Part::Scatter, scatter}};
}

// Logits of all tokens of the group, for a share of the vocabulary. Gathered tokens replace the
// rank's own and are kept: the head's gradients follow at once.
PartBytes head_bytes(const config::ModelConfig& model, const TokenFlow& flow) {
  const std::int64_t tp = model.tensor_model_parallel_size;
  const bool is_whole = flow.logits == derive::LogitsKept::Whole;
  const std::int64_t logit = is_whole ? kFp32 : element_bytes(model);
  PieceBytes gather = gather_bytes(model);
  gather.remade = {};
  const Bytes sums{.per_token = (tp - 1) * tp * 2 * kFp32};
  return {{Part::Norm, keeps({.per_token = tp == 1 ? norm_bytes(model) : kFp32})},
          {Part::Gather, gather},
          {Part::Logits, keeps({.per_token = model.padded_vocab_size() * logit})},
          {Part::Sums, {.sent_forward = sums}},
          {Part::Loss, keeps(of_group(model, kFp32))}};
}

// Bytes of one part, or of all the piece's parts.
PieceBytes pick(const config::ModelConfig& model,
                const PartBytes& parts,
                const PieceName& name,
                int layer) {
  const std::vector<Part> own = parts_of(model, name.piece, layer);
  PieceBytes picked;
  for (const auto& [part, bytes] : parts) {
    const bool is_asked_for = name.part == Part::None || name.part == part;
    if (!is_asked_for || std::ranges::find(own, part) == own.end()) continue;
    picked.kept = sum(picked.kept, bytes.kept);
    picked.output = sum(picked.output, bytes.output);
    picked.remade = sum(picked.remade, bytes.remade);
    if (name.part == part) picked.travels = bytes.travels;
    picked.sent_forward = sum(picked.sent_forward, bytes.sent_forward);
    picked.sent_backward = sum(picked.sent_backward, bytes.sent_backward);
  }
  return picked;
}

// Bytes of a piece that moves rows between ranks.
PieceBytes sends(const config::ModelConfig& model,
                 const TokenFlow& flow,
                 Bytes DispatchSent::*piece,
                 const Bytes& kept) {
  return {.kept = kept,
          .sent_forward = dispatch_sent_bytes(model, flow, Direction::F).*piece,
          .sent_backward = dispatch_sent_bytes(model, flow, Direction::D).*piece};
}

// Resent rows travel without probabilities and choices, as the outputs' gradients do.
PieceBytes sends_again(PieceBytes bytes, const Bytes& rows) {
  bytes.sent_again = rows;
  return bytes;
}

}  // namespace

std::int64_t tallied_runs(const config::ModelConfig& model, const TokenFlow& flow) {
  if (flow.sharers() == 1) return 0;
  const bool batch = model.aux_loss_coeff(config::LoadBalancing::AuxLoss) != 0;
  const bool sequence = model.aux_loss_coeff(config::LoadBalancing::SeqAuxLoss) != 0;
  return (batch ? 1 : 0) + (sequence ? flow.sequences : 0);
}

PieceBytes bytes_of(const config::ModelConfig& model,
                    const TokenFlow& flow,
                    const PieceName& name,
                    int layer) {
  const Bytes stream = stream_bytes(model);
  switch (name.piece) {
    case Piece::Embed:
      return pick(model, embed_bytes(model), name, layer);
    case Piece::Merge:
    case Piece::Receive:
      return hands_on(stream);
    case Piece::Send:
      return {.sent_forward = stream, .sent_backward = stream};
    case Piece::Attention:
      return pick(model, attention_bytes(model, layer), name, layer);
    case Piece::Mlp:
      return pick(model, mlp_bytes(model), name, layer);
    case Piece::Route:
      return pick(model, route_bytes(model, flow), name, layer);
    case Piece::Counts:
      return sends(model, flow, &DispatchSent::counts, {});
    case Piece::Balance:
      return {.sent_forward = {.fixed = summed_bytes(model.experts(), flow.replicas)}};
    case Piece::Tally: {
      const std::int64_t rows = tallied_runs(model, flow) * model.experts();
      return {.sent_forward = {.fixed = summed_bytes(rows, flow.sharers())}};
    }
    case Piece::Dispatch:
      return sends_again(
          sends(model, flow, &DispatchSent::dispatch, dispatch_kept_bytes(model, flow).dispatch),
          dispatch_sent_bytes(model, flow, Direction::D).combine);
    case Piece::Experts:
      return pick(model, experts_bytes(model, flow), name, layer);
    case Piece::Combine:
      return sends(model, flow, &DispatchSent::combine, {});
    case Piece::Shared:
      return pick(model, shared_bytes(model), name, layer);
    case Piece::Head:
      return pick(model, head_bytes(model, flow), name, layer);
    case Piece::Sizes:
    case Piece::Permute:
    case Piece::Narrow:
    case Piece::Reduce:
    case Piece::Widen:
    case Piece::Gather:
    case Piece::Tie:
    case Piece::Norm:
    case Piece::Totals:
    case Piece::Clip:
    case Piece::Optimizer:
    case Piece::Snapshot:
    case Piece::Download:
    case Piece::Update:
    case Piece::Upload:
      return {};
  }
  UNREACHABLE("piece {}", static_cast<int>(name.piece));
}

}  // namespace weft::schedule
