#include "weft/train/batch.h"

namespace weft::train {

Batch read_batch(const Share& share, std::int64_t sequence_length, const ReadSequence& read) {
  Batch batch(static_cast<std::size_t>(share.micro_batches));
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(sequence_length + 1));
  for (std::int64_t m = 0; m < share.micro_batches; ++m) {
    MicroBatch& part = batch[static_cast<std::size_t>(m)];
    for (std::int64_t i = 0; i < share.micro_batch_size; ++i) {
      read(share.first_sequence(m) + i, tokens);
      part.ids.insert(part.ids.end(), tokens.begin(), tokens.end() - 1);
      part.labels.insert(part.labels.end(), tokens.begin() + 1, tokens.end());
    }
  }
  return batch;
}

}  // namespace weft::train
