#include "weft/derive/parameters.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/derive/blocks.h"
#include "weft/derive/derived.h"
#include "weft/derive/layer_kind.h"
#include "weft/derive/pipeline.h"

namespace weft::derive {

using block::Block;
using block::Home;
using block::Weight;
using config::Config;
using config::ModelConfig;

namespace {

BlockParameters counted(const ModelConfig& model, const std::vector<Block>& blocks) {
  BlockParameters sum;
  for (const Block& block : blocks) {
    for (const Weight& weight : block.weights) {
      const std::int64_t elements = weight.shape.elements();
      switch (weight.home) {
        case Home::Dense:
          sum.dense += elements;
          break;
        case Home::Untrained:
          sum.untrained += elements;
          break;
        case Home::Expert:
          sum.experts += elements;
          sum.visited += elements / model.experts() * model.moe_router_topk;
          break;
      }
    }
  }
  return sum;
}

// Blocks of a layer of multi-token prediction.
std::vector<Block> ahead_blocks(const ModelConfig& model) {
  std::vector<Block> blocks = layer_blocks(model, model.num_layers - 1);
  blocks.push_back(token_ahead_block(model));
  return blocks;
}

double rough_elements(const std::vector<Block>& blocks) {
  double sum = 0;
  for (const Block& block : blocks) {
    for (const Weight& weight : block.weights) {
      double elements = 1;
      for (const std::int64_t dim : weight.shape.dims()) elements *= base::number(dim);
      sum += elements;
    }
  }
  return sum;
}

std::int64_t ranks_on(const grid::Layout& layout, block::Axis axis) {
  switch (axis) {
    case block::Axis::Tp:
      return layout.tp;
    case block::Axis::Ep:
      return layout.ep;
    case block::Axis::Etp:
      return layout.etp;
  }
  UNREACHABLE("axis {}", static_cast<int>(axis));
}

// Extent on the first rank, which holds at least as much as any other.
std::int64_t held_along(const block::AxisSplit& split, std::int64_t ranks) {
  std::int64_t held = 0;
  for (const block::SplitBlock& run : split.blocks) {
    const std::int64_t parts = run.most_parts == 0 ? ranks : std::min(ranks, run.most_parts);
    const std::int64_t divided = std::max(run.count, run.padded);
    held += std::min(run.count, (divided + parts - 1) / parts);
  }
  return held;
}

std::int64_t held_elements(const Weight& weight, const grid::Layout& layout) {
  std::int64_t held = 1;
  for (int dim = 0; dim < weight.shape.rank(); ++dim) {
    const auto split = std::ranges::find(weight.splits, dim, &block::AxisSplit::dim);
    held *= split == weight.splits.end() ? weight.shape[dim]
                                         : held_along(*split, ranks_on(layout, split->axis));
  }
  return held;
}

RankParameters held_by_rank(const std::vector<Block>& blocks, const grid::Layout& layout) {
  RankParameters held;
  for (const Block& block : blocks) {
    for (const Weight& weight : block.weights) {
      std::int64_t& sum = weight.home == Home::Expert  ? held.experts
                          : weight.home == Home::Dense ? held.dense
                                                       : held.untrained;
      sum += held_elements(weight, layout);
    }
  }
  return held;
}

void add(RankParameters& to, const RankParameters& each, std::int64_t times) {
  to.dense += times * each.dense;
  to.experts += times * each.experts;
  to.untrained += times * each.untrained;
}

}  // namespace

BlockParameters layer_parameters(const ModelConfig& model, std::int64_t layer) {
  return counted(model, layer_blocks(model, layer));
}

BlockParameters mtp_layer_parameters(const ModelConfig& model) {
  return counted(model, ahead_blocks(model));
}

ParameterCount parameters_of(const ModelConfig& model) {
  ParameterCount count;
  count.total = counted(model, {embedding_block(model), head_block(model)}).dense;
  count.active = count.total;
  for (const LayerKindCount& kind : layer_kinds(model, 0, model.num_layers)) {
    const BlockParameters layer = layer_parameters(model, kind.layer);
    count.total += kind.count * layer.total();
    count.active += kind.count * layer.active();
    count.experts += kind.count * layer.experts;
  }
  if (const std::int64_t depth = mtp_layers(model); depth > 0) {
    const BlockParameters layer = mtp_layer_parameters(model);
    count.mtp = depth * layer.total();
    count.total += count.mtp;
    count.experts += depth * layer.experts;
  }
  return count;
}

double rough_parameters(const ModelConfig& model) {
  double sum = rough_elements({embedding_block(model), head_block(model)});
  for (const LayerKindCount& kind : layer_kinds(model, 0, model.num_layers)) {
    sum += base::number(kind.count) * rough_elements(layer_blocks(model, kind.layer));
  }
  return sum + base::number(mtp_layers(model)) * rough_elements(ahead_blocks(model));
}

std::vector<RankParameters> rank_parameters(const Config& config) {
  const ModelConfig& model = config.model;
  const grid::Layout layout = layout_of(config);
  const Block embedding = embedding_block(model);
  const RankParameters head = held_by_rank({head_block(model)}, layout);
  const std::int64_t table = held_elements(embedding.weights.front(), layout);
  std::vector<RankParameters> ranks(static_cast<std::size_t>(layout.pp));
  std::vector<std::int64_t> tables(ranks.size());
  const std::vector<Stage> stages = stages_of(model).all;
  const Pipeline pipeline = pipeline_of(config);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Stage& stage = stages[s];
    const auto place = static_cast<std::size_t>(pipeline.rank_of(static_cast<int>(s)));
    RankParameters& rank = ranks[place];
    for (const LayerKindCount& kind : layer_kinds(model, stage.first_layer, stage.layers)) {
      add(rank, held_by_rank(layer_blocks(model, kind.layer), layout), kind.count);
    }
    if (stage.mtp_layers > 0) {
      add(rank, held_by_rank(ahead_blocks(model), layout), stage.mtp_layers);
    }
    const bool tied = model.share_embeddings_and_output_weights;
    if (stage.embedding) rank.dense += held_by_rank({embedding}, layout).dense - table;
    if (stage.embedding || stage.mtp_layers > 0 || (stage.loss && tied)) tables[place] = table;
    if (stage.loss) add(rank, head, 1);
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].dense += tables[i];
  return ranks;
}

}  // namespace weft::derive
