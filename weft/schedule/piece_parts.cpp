#include "weft/schedule/piece_parts.h"

#include <utility>

#include "weft/derive/context_sharing.h"
#include "weft/derive/layer_kind.h"

namespace weft::schedule {
namespace {

// Products shared by tensor-parallel ranks, between the exchanges of their tokens.
std::vector<Part> exchanged(const config::ModelConfig& model, std::vector<Part> products) {
  if (model.tensor_model_parallel_size == 1) return products;
  products.insert(products.begin(), Part::Gather);
  products.push_back(Part::Scatter);
  return products;
}

// Products with a norm before and the residual after them.
std::vector<Part> sub_layer(const config::ModelConfig& model, std::vector<Part> products) {
  std::vector<Part> parts = exchanged(model, std::move(products));
  parts.insert(parts.begin(), Part::Norm);
  parts.push_back(Part::Add);
  return parts;
}

std::vector<Part> attention_parts(const config::ModelConfig& model, int layer) {
  const derive::AttentionSharing sharing = derive::attention_sharing(model, layer);
  std::vector<Part> parts{Part::Qkv};
  if (model.multi_latent_attention) parts.push_back(Part::Expand);
  if (derive::norms_across_ranks(model)) parts.insert(parts.end(), {Part::Squares, Part::Turn});
  if (sharing.head_ranks > 1) parts.insert(parts.end(), {Part::Heads, Part::Arrange});
  if (sharing.keys == derive::KeyExchange::Ring) parts.push_back(Part::Ring);
  if (sharing.keys == derive::KeyExchange::Gather) parts.push_back(Part::Keys);
  parts.push_back(Part::Core);
  if (sharing.head_ranks > 1) parts.push_back(Part::Tokens);
  parts.push_back(Part::Proj);
  return parts;
}

std::vector<Part> shared_parts(const config::ModelConfig& model) {
  std::vector<Part> parts = exchanged(model, {Part::Fc1, Part::Fc2});
  if (model.moe_shared_expert_gate) parts.push_back(Part::Gate);
  return parts;
}

std::vector<Part> head_parts(const config::ModelConfig& model) {
  if (model.tensor_model_parallel_size == 1) return {Part::Norm, Part::Logits, Part::Loss};
  return {Part::Norm, Part::Gather, Part::Logits, Part::Sums, Part::Loss};
}

}  // namespace

std::vector<Part> parts_of(const config::ModelConfig& model, Piece piece, int layer) {
  switch (piece) {
    case Piece::Attention:
      return sub_layer(model, attention_parts(model, layer));
    case Piece::Mlp:
      return sub_layer(model, {Part::Fc1, Part::Act, Part::Fc2});
    case Piece::Shared:
      return shared_parts(model);
    case Piece::Route:
      return {Part::Norm, Part::Choose};
    case Piece::Experts:
      return {Part::Arrange, Part::Fc1, Part::Act, Part::Fc2};
    case Piece::Embed:
      return model.tensor_model_parallel_size == 1 ? std::vector{Part::Lookup}
                                                   : std::vector{Part::Lookup, Part::Scatter};
    case Piece::Head:
      return head_parts(model);
    case Piece::Counts:
    case Piece::Balance:
    case Piece::Tally:
    case Piece::Sizes:
    case Piece::Permute:
    case Piece::Dispatch:
    case Piece::Combine:
    case Piece::Merge:
    case Piece::Send:
    case Piece::Receive:
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
  return {};
}

}  // namespace weft::schedule
