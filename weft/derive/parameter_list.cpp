#include "weft/derive/parameter_list.h"

#include <cmath>
#include <map>
#include <utility>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/derive/blocks.h"

namespace weft::derive {
namespace {

// Collects specs, each with the part that a rank has of it.
class SpecList {
 public:
  SpecList(const config::ModelConfig& model, const AxisRanks& ranks)
      : model_(model), ranks_(ranks) {}

  void add(const block::Block& block, int layer = -1) {
    for (const block::Weight& weight : block.weights) add(block, weight, layer);
  }

  void add(const block::Block& block, const block::Weight& weight, int layer) {
    const std::string name = block::name_of(block, weight);
    ParameterSpec spec{.name = layer < 0 ? name : base::text("layers.{}.{}", layer, name),
                       .global_shape = weight.shape,
                       .splits = weight.splits,
                       .slice = part_of(model_, weight.shape, weight.splits, ranks_),
                       .home = weight.home,
                       .piece = block.piece,
                       .layer = layer,
                       .start = weight.start,
                       .init_deviation = deviation(weight.start)};
    spec.shape = spec.slice.part();
    spec.room = part_of(model_, weight.shape, weight.splits, {}).elements.count;
    specs.push_back(std::move(spec));
  }

  std::vector<ParameterSpec> specs;

 private:
  double deviation(block::Start start) const {
    const double product = model_.init_method_std;
    if (start == block::Start::Product) return product;
    const bool is_residual = start == block::Start::Residual;
    return is_residual ? product / std::sqrt(2 * base::number(model_.num_layers)) : 0;
  }

  const config::ModelConfig& model_;
  const AxisRanks ranks_;
};

}  // namespace

std::vector<ParameterSpec> list_parameters(const config::ModelConfig& model,
                                           const Holding& holding,
                                           const AxisRanks& ranks) {
  SpecList list(model, ranks);
  const block::Block embedding = embedding_block(model);
  if (holding.embedding) list.add(embedding);
  std::map<LayerKind, std::vector<block::Block>> kinds;
  for (const int layer : holding.layers) {
    std::vector<block::Block>& blocks = kinds[kind_of_layer(model, layer)];
    if (blocks.empty()) blocks = layer_blocks(model, layer);
    for (const block::Block& block : blocks) list.add(block, layer);
  }
  if (holding.head) {
    list.add(head_block(model));
    if (holding.copies_table(model)) list.add(embedding, embedding.weights.front(), -1);
  }
  return list.specs;
}

}  // namespace weft::derive
