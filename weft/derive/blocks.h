// Blocks of a model (weft/block/), declared from its config.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/block/block.h"
#include "weft/block/experts.h"
#include "weft/config/model_config.h"
#include "weft/derive/layer_kind.h"

namespace weft::derive {

block::Stream stream_of(const config::ModelConfig& model);
block::Vocabulary vocabulary_of(const config::ModelConfig& model);

// Blocks of a layer with weights, in forward order: a mixer, then a feed-forward, or a router,
// shared experts and experts.
std::vector<block::Block> layer_blocks(const config::ModelConfig& model,
                                       std::int64_t layer,
                                       const block::AttentionSharing& sharing = {},
                                       const block::Routing& routing = {});

block::Block embedding_block(const config::ModelConfig& model);
block::Block head_block(const config::ModelConfig& model);
// Block of a multi-token prediction layer besides a copy of the last layer.
block::Block token_ahead_block(const config::ModelConfig& model);

// Layers of one kind have equal blocks, apart from what context-parallel ranks exchange.
struct LayerKind {
  AttentionKind attention = AttentionKind::Grouped;
  bool is_windowed = false;
  bool is_moe = false;

  auto operator<=>(const LayerKind&) const = default;
};
LayerKind kind_of_layer(const config::ModelConfig& model, std::int64_t layer);

// Layers with equal blocks, counted together: models have few kinds of layers.
struct LayerKindCount {
  std::int64_t layer = 0;  // first of its kind
  std::int64_t count = 0;
};
std::vector<LayerKindCount> layer_kinds(const config::ModelConfig& model,
                                        std::int64_t first,
                                        std::int64_t count);

}  // namespace weft::derive
