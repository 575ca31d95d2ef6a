// What each piece keeps and sends. Tests hold these formulas against the engine's pool and
// communicators, to the byte.
#include "weft/schedule/anatomy_bytes.h"

#include "weft/base/check.h"
#include "weft/derive/layer_kind.h"
#include "weft/schedule/dispatch_bytes.h"
#include "weft/schedule/element_bytes.h"

namespace weft::schedule {
namespace {

// A norm keeps its output and one reciprocal deviation a token.
std::int64_t norm_bytes(const config::ModelConfig& model) {
  return model.hidden_size * element_bytes(model) + kFp32;
}

// The projection down, what is compressed once more normed, expanded queries, keys and values.
std::int64_t latent_attention_bytes(const config::ModelConfig& model) {
  const std::int64_t b = element_bytes(model), heads = model.num_attention_heads;
  const std::int64_t q = heads * model.latent_head_dim(), r = model.kv_lora_rank;
  std::int64_t bytes = norm_bytes(model);
  bytes += (model.q_lora_rank.value_or(q) + r + model.qk_pos_emb_head_dim) * b;
  if (model.q_lora_rank) bytes += (*model.q_lora_rank + q) * b + kFp32;
  bytes += r * b + kFp32;
  bytes += (q + heads * model.v_head_dim) * b;            // keys and values
  bytes += heads * model.v_head_dim * b + heads * kFp32;  // output, logarithm
  return bytes + model.hidden_size * b;
}

std::int64_t attention_bytes(const config::ModelConfig& model) {
  if (model.multi_latent_attention) return latent_attention_bytes(model);
  const std::int64_t b = element_bytes(model), q = model.query_width(), k = model.key_width();
  std::int64_t bytes = norm_bytes(model) + (q + 2 * k) * b;  // qkv
  switch (model.qk_layernorm) {
    case config::QkNorm::None:
      break;
    case config::QkNorm::Head:
      bytes += (q + k) * b + (model.num_attention_heads + model.query_groups()) * kFp32;
      break;
    case config::QkNorm::Projection:
      bytes += (q + k) * b + 2 * kFp32;
      break;
  }
  bytes += q * b + model.num_attention_heads * kFp32;  // output, log of the sum of exponentials
  return bytes + model.hidden_size * b;                // the residual stream after attention
}

std::int64_t mlp_bytes(const config::ModelConfig& model) {
  const std::int64_t b = element_bytes(model);
  return norm_bytes(model) + 3 * model.dense_width() * b + model.hidden_size * b;
}

Bytes route_bytes(const config::ModelConfig& model) {
  const std::int64_t experts = model.experts(), k = model.moe_router_topk;
  Bytes bytes{.per_token = norm_bytes(model) + experts * kFp32 + k * (kFp32 + kInt32)};
  // The choice before slots are dropped; the rows that a global loss counts.
  if (model.moe_expert_capacity_factor) bytes.per_token += k * (kFp32 + kInt32);
  if (model.aux_loss_coeff(config::LoadBalancing::GlobalAuxLoss) != 0) {
    bytes.fixed += experts * kInt64;
  }
  return bytes;
}

// FC1's output and the activation; what the experts read is the dispatcher's to say.
std::int64_t experts_row_bytes(const config::ModelConfig& model) {
  return 3 * model.expert_width() * element_bytes(model);
}

// The rows of every expert, summed over the ranks with other tokens: each sends all but its part,
// and the sum of its part to every other. Of unequal parts, the mean, rounded
// down.
std::int64_t balance_bytes(const config::ModelConfig& model, const TokenFlow& flow) {
  return 2 * (flow.replicas - 1) * model.experts() * kInt64 / flow.replicas;
}

Bytes sum(const Bytes& a, const Bytes& b) {
  return {.fixed = a.fixed + b.fixed,
          .per_token = a.per_token + b.per_token,
          .per_row = a.per_row + b.per_row,
          .per_copy = a.per_copy + b.per_copy,
          .per_passing = a.per_passing + b.per_passing,
          .per_onward = a.per_onward + b.per_onward};
}

// The first part keeps FC1's output and the activation; the second, where there is a gate, what the
// gate is multiplied with and its logit.
std::int64_t shared_bytes(const config::ModelConfig& model, Part part) {
  const std::int64_t b = element_bytes(model);
  if (part == Part::Fc1) return 3 * derive::shared_expert_width(model) * b;
  return model.moe_shared_expert_gate ? model.hidden_size * b + kFp32 : 0;
}

}  // namespace

Bytes kept_bytes(const config::ModelConfig& model, const TokenFlow& flow, const PieceName& name) {
  const Bytes dispatched = dispatch_kept_bytes(model, flow, name.piece);
  const std::int64_t stream = model.hidden_size * element_bytes(model);
  switch (name.piece) {
    case Piece::Embed:
    case Piece::Merge:
    case Piece::Receive:
      return {.per_token = stream};
    case Piece::Attention:
      return {.per_token = attention_bytes(model)};
    case Piece::Mlp:
      return {.per_token = mlp_bytes(model)};
    case Piece::Route:
      return sum(route_bytes(model), dispatched);
    case Piece::Dispatch:
      return dispatched;
    case Piece::Shared:
      return {.per_token = shared_bytes(model, name.part)};
    case Piece::Experts:
      return sum({.fixed = model.local_experts() * kInt64, .per_row = experts_row_bytes(model)},
                 dispatched);
    case Piece::Head:
      return {.per_token = norm_bytes(model) + (model.vocab_size + 1) * kFp32};
    default:
      return {};
  }
}

Bytes sent_bytes(const config::ModelConfig& model,
                 const TokenFlow& flow,
                 Piece piece,
                 Direction direction) {
  switch (piece) {
    case Piece::Counts:
    case Piece::Dispatch:
    case Piece::Combine:
      return dispatch_sent_bytes(model, flow, piece, direction);
    case Piece::Balance:
      return {.fixed = direction == Direction::F ? balance_bytes(model, flow) : 0};
    case Piece::Send:
      return {.per_token = model.hidden_size * element_bytes(model)};
    default:
      return {};
  }
}

}  // namespace weft::schedule
