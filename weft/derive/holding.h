// Which part of the model a pipeline rank holds.
#pragma once

#include <vector>

#include "weft/config/model_config.h"
#include "weft/derive/pipeline.h"

namespace weft::derive {

struct Holding {
  std::vector<int> layers;  // ascending
  bool embedding = false;
  bool head = false;
  std::vector<int> later_chunks = {};  // the first layer of each chunk but the first

  bool has_layer(int layer) const;
  // The chunk of a layer, from 0; the embedding is in the first, the head in the last.
  int chunk_of_layer(int layer) const;
  int last_chunk() const { return static_cast<int>(later_chunks.size()); }
  // Tied embeddings between two ranks: the head's rank has its own copy of the embedding's table.
  bool copies_table(const config::ModelConfig& config) const;
};

Holding whole_model(const config::ModelConfig& config);
// Of pipeline rank `pp_rank`; the config has been validated.
Holding holding_of(const config::ModelConfig& config,
                   int pp_rank,
                   Placement placement = Placement::Ring);

}  // namespace weft::derive
