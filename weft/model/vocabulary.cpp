#include "weft/model/vocabulary.h"

namespace weft::model {

kernels::OtherIds other_ids(const config::ModelConfig& config, const derive::AxisRanks& ranks) {
  const derive::AxisSplit split = derive::vocabulary_split(config);
  const base::Slice own = derive::part_of(config, {config.vocab_size}, {&split, 1}, ranks);
  const base::Range& ids = own.dims.front().front();
  return {.before = ids.begin, .behind = config.vocab_size - ids.end()};
}

}  // namespace weft::model
