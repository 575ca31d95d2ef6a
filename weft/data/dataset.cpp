#include "weft/data/dataset.h"

#include <limits>

#include "weft/base/check.h"
#include "weft/data/blend.h"
#include "weft/data/indexed.h"
#include "weft/data/mock.h"
#include "weft/data/split_datasets.h"
#include "weft/data/splits.h"
#include "weft/data/text_files.h"

namespace weft::data {
namespace {

using base::text;

void check_path(const config::DatasetConfig& config) {
  if (!config.path.empty()) return;
  throw base::ConfigError(
      text("dataset.path is empty; dataset.kind={} reads from a path: set it, "
           "dataset.blend or dataset.blend_per_split",
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

void check_bytes(std::int64_t vocab_size) {
  if (vocab_size >= 256) return;
  throw base::ConfigError(
      text("model.vocab_size={} is too small for dataset.kind=text, whose tokens are bytes: "
           "set it to 256 or more",
           vocab_size));
}

// Options shared by a data set and those it is blended with.
struct Common {
  std::int64_t seq_length, vocab_size;
  std::uint64_t seed;
  std::uint64_t parts;  // data sets that share the limits on bytes held and checked
};

std::unique_ptr<Dataset> open_one(const config::DatasetConfig& config, const Common& common) {
  const auto& [seq_length, vocab_size, seed, parts] = common;
  if (!config.split.empty() && config.kind == config::DataKind::Text) {
    throw base::ConfigError(
        text("dataset.split='{}' cuts indexed data between sequences, and dataset.kind=text has "
             "none: set dataset.eval_fraction instead",
             base::shown(config.split)));
  }
  switch (config.kind) {
    case config::DataKind::Mock:
      return std::make_unique<MockDataset>(seq_length, vocab_size, seed);
    case config::DataKind::Text:
      check_path(config);
      check_bytes(vocab_size);
      return std::make_unique<TextDataset>(config,
                                           seq_length,
                                           seed,
                                           TextDataset::kMostHeld / parts);
    case config::DataKind::Indexed:
      check_path(config);
      return std::make_unique<IndexedDataset>(config,
                                              seq_length,
                                              vocab_size,
                                              seed,
                                              IndexedDataset::kJudgedBytes / parts);
  }
  UNREACHABLE("dataset kind {}", static_cast<int>(config.kind));
}

std::unique_ptr<Dataset> open_blend(const config::DatasetConfig& config, Common common) {
  if (config.kind == config::DataKind::Mock || !config.path.empty()) {
    throw base::ConfigError(
        text("dataset.blend names data sets to read, and so does {}: leave one of them out ({})",
             config.path.empty() ? "dataset.kind=mock" : "dataset.path=" + config.path,
             config.path.empty() ? "dataset.kind=indexed reads a blend"
                                 : "~dataset.path takes back what a recipe says"));
  }
  Blend blend = parse_blend(config.blend);
  common.parts *= blend.paths.size();
  std::vector<std::unique_ptr<Dataset>> parts;
  config::DatasetConfig one = config;
  one.blend.clear();
  for (const std::string& path : blend.paths) {
    one.path = path;
    parts.push_back(open_one(one, common));
  }
  return std::make_unique<BlendedDataset>(std::move(blend), std::move(parts));
}

// Opens a data set per split.
std::unique_ptr<Dataset> open_splits(const config::DatasetConfig& config, Common common) {
  if (config.kind == config::DataKind::Mock || !config.path.empty() || !config.blend.empty() ||
      !config.split.empty()) {
    const std::string other = !config.path.empty()    ? "dataset.path=" + config.path
                              : !config.blend.empty() ? "dataset.blend"
                              : !config.split.empty() ? "dataset.split=" + config.split
                                                      : "dataset.kind=mock";
    throw base::ConfigError(
        text("dataset.blend_per_split says what each split reads, and so does {}: leave one of "
             "them out ({})",
             base::shown(other),
             config.kind == config::DataKind::Mock ? "dataset.kind=indexed reads a blend"
                                                   : "~KEY takes back what a recipe says"));
  }
  const std::array<std::vector<std::string>, kSplits> blends =
      parse_blend_per_split(config.blend_per_split);
  common.parts = kSplits;
  std::array<std::unique_ptr<Dataset>, kSplits> parts;
  config::DatasetConfig one = config;
  one.blend_per_split.clear();
  one.eval_fraction = 0;
  for (std::size_t i = 0; i < blends.size(); ++i) {
    if (blends[i].empty()) continue;
    one.blend = blends[i];
    Common own = common;
    // Evaluation data has a fixed order, so that runs with other seeds compare.
    if (static_cast<Split>(i) != Split::Train) own.seed = 0;
    parts[i] = open_blend(one, own);
  }
  return std::make_unique<SplitDatasets>(std::move(parts));
}

}  // namespace

bool has_test_split(const config::DatasetConfig& config) {
  constexpr auto kTest = static_cast<std::size_t>(Split::Test);
  if (!config.blend_per_split.empty()) {
    return !parse_blend_per_split(config.blend_per_split)[kTest].empty();
  }
  const bool is_split = config.kind == config::DataKind::Indexed && !config.split.empty();
  return is_split && parse_split(config.split)[kTest] > 0;
}

std::string_view word(Split split) {
  switch (split) {
    case Split::Train:
      return "training";
    case Split::Eval:
      return "evaluation";
    case Split::Test:
      return "test";
  }
  UNREACHABLE("split {}", static_cast<int>(split));
}

std::unique_ptr<Dataset> open_dataset(const config::DatasetConfig& config,
                                      std::int64_t seq_length,
                                      std::int64_t vocab_size,
                                      std::uint64_t seed) {
  check_sizes(seq_length, vocab_size);
  const Common common{.seq_length = seq_length, .vocab_size = vocab_size, .seed = seed, .parts = 1};
  if (!config.blend_per_split.empty()) return open_splits(config, common);
  return config.blend.empty() ? open_one(config, common) : open_blend(config, common);
}

}  // namespace weft::data
