#include "weft/train/batch.h"

#include "weft/base/casts.h"
#include "weft/base/check.h"

namespace weft::train {
namespace {

// Shares numbers of each token, `width` per token.
std::vector<std::int32_t> share_of(const std::vector<std::int32_t>& whole,
                                   std::int64_t width,
                                   const derive::SequenceShare& share) {
  std::vector<std::int32_t> own;
  own.reserve(whole.size() / static_cast<std::size_t>(share.ranks));
  const std::int64_t sequence = share.length * width, chunk = share.chunk() * width;
  CHECK(std::ssize(whole) % sequence == 0,
        "{} numbers for sequences of {}",
        whole.size(),
        sequence);
  for (std::int64_t first = 0; first < std::ssize(whole); first += sequence) {
    for (const std::int64_t begin : {share.front(), share.back()}) {
      const auto at = whole.begin() + first + begin * width;
      own.insert(own.end(), at, at + chunk);
    }
  }
  return own;
}

}  // namespace

MicroBatch tokens_of(const MicroBatch& whole, const derive::SequenceShare& share) {
  if (share.is_whole()) return whole;
  MicroBatch own{.ids = share_of(whole.ids, 1, share), .labels = share_of(whole.labels, 1, share)};
  for (const std::vector<std::int32_t>& experts : whole.experts) {
    const std::int64_t width = std::ssize(experts) / std::ssize(whole.ids);
    own.experts.push_back(experts.empty() ? experts : share_of(experts, width, share));
  }
  return own;
}

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

Batch blank_batch(const Share& share, std::int64_t sequence_length) {
  const std::vector<std::int32_t> tokens(base::at(share.micro_batch_size * sequence_length));
  return Batch(base::at(share.micro_batches),
               MicroBatch{.ids = tokens, .labels = tokens, .experts = {}});
}

}  // namespace weft::train
