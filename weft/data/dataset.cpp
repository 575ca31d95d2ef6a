#include "weft/data/dataset.h"

#include <limits>

#include "weft/base/check.h"
#include "weft/data/indexed.h"
#include "weft/data/mock.h"
#include "weft/data/text_files.h"

namespace weft::data {
namespace {

using base::text;

void check_path(const config::DatasetConfig& config) {
  if (!config.path.empty()) return;
  throw base::ConfigError(text("dataset.path is empty; dataset.kind={} reads from a path: set it",
                               config::word(config.kind)));
}

void check_sizes(std::int64_t seq_length, std::int64_t vocab_size) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
  if (seq_length < 1 || seq_length >= kLargest) {
    throw base::ConfigError(text("model.seq_length={} must be in [1, {})", seq_length, kLargest));
  }
  if (vocab_size < 1 || vocab_size > kLargest) {
    throw base::ConfigError(text("model.vocab_size={} must be in [1, {}]", vocab_size, kLargest));
  }
}

}  // namespace

std::unique_ptr<Dataset> open_dataset(const config::DatasetConfig& config,
                                      std::int64_t seq_length,
                                      std::int64_t vocab_size,
                                      std::uint64_t seed) {
  check_sizes(seq_length, vocab_size);
  switch (config.kind) {
    case config::DataKind::Mock:
      return std::make_unique<MockDataset>(seq_length, vocab_size, seed);
    case config::DataKind::Text:
      check_path(config);
      if (vocab_size < 256) {
        throw base::ConfigError(
            text("model.vocab_size={} is too small for dataset.kind=text, whose tokens are bytes: "
                 "set it to 256 or more",
                 vocab_size));
      }
      return std::make_unique<TextDataset>(config, seq_length, seed);
    case config::DataKind::Indexed:
      check_path(config);
      return std::make_unique<IndexedDataset>(config, seq_length, vocab_size, seed);
  }
  UNREACHABLE("dataset kind {}", static_cast<int>(config.kind));
}

}  // namespace weft::data
