// Part of the model on a pipeline rank.
#pragma once

#include <vector>

#include "weft/config/model_config.h"
#include "weft/derive/pipeline.h"

namespace weft::derive {

struct Holding {
  std::vector<int> layers;  // ascending
  bool embedding = false;
  bool head = false;
  std::vector<int> later_chunks = {};  // first layer of each chunk except the first

  bool has_layer(int layer) const;
  // Chunk of a layer, from 0. The embedding is in the first chunk, the head in the last.
  int chunk_of_layer(int layer) const;
  int last_chunk() const { return static_cast<int>(later_chunks.size()); }
  // True for tied embeddings on two ranks: the head's rank holds a copy of the embedding table.
  bool copies_table(const config::ModelConfig& config) const;
};

Holding whole_model(const config::ModelConfig& config);
// Holding of pipeline rank `pp_rank`; the config is valid.
Holding holding_of(const config::ModelConfig& config,
                   int pp_rank,
                   Placement placement = Placement::Ring);

}  // namespace weft::derive
