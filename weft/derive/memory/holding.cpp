#include "weft/derive/memory/holding.h"

#include <algorithm>
#include <numeric>

#include "weft/base/check.h"

namespace weft::derive {

bool Holding::has_layer(int layer) const { return std::ranges::binary_search(layers, layer); }

int Holding::chunk_of_layer(int layer) const {
  return static_cast<int>(
      std::ranges::count_if(later_chunks, [&](int first) { return first <= layer; }));
}

bool Holding::copies_table(const config::ModelConfig& config) const {
  return config.share_embeddings_and_output_weights && head && !embedding;
}

Holding whole_model(const config::ModelConfig& config) {
  Holding whole{.layers = std::vector<int>(static_cast<std::size_t>(config.num_layers)),
                .embedding = true,
                .head = true};
  std::iota(whole.layers.begin(), whole.layers.end(), 0);
  return whole;
}

Holding holding_of(const config::ModelConfig& config, int pp_rank, Placement placement) {
  const Stages stages = stages_of(config);
  CHECK(stages.complaints.empty(), "stages: {}", fmt::join(stages.complaints, "; "));
  Holding holding;
  const std::vector<int> own = pipeline_of(config, placement).stages_of(pp_rank);
  for (const int index : own) {
    const Stage& stage = stages.all[static_cast<std::size_t>(index)];
    if (index != own.front()) holding.later_chunks.push_back(stage.first_layer);
    for (int layer = 0; layer < stage.layers; ++layer) {
      holding.layers.push_back(stage.first_layer + layer);
    }
    holding.embedding |= stage.embedding;
    holding.head |= stage.loss;
  }
  return holding;
}

}  // namespace weft::derive
