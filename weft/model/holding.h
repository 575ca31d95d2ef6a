// Which part of the model a pipeline rank holds.
#pragma once

#include <vector>

#include "weft/config/model_config.h"
#include "weft/derive/pipeline.h"

namespace weft::model {

struct Holding {
  std::vector<int> layers;  // ascending
  bool embedding = false;
  bool head = false;

  bool has_layer(int layer) const;
  // Tied embeddings between two ranks: the head's rank has its own copy of the embedding's table.
  bool copies_table(const config::ModelConfig& config) const;
};

Holding whole_model(const config::ModelConfig& config);
// Of pipeline rank `pp_rank`; the config has been validated.
Holding holding_of(const config::ModelConfig& config,
                   int pp_rank,
                   derive::Placement placement = derive::Placement::Ring);

}  // namespace weft::model
