#include "weft/data/split_datasets.h"

#include "weft/base/check.h"
#include "weft/config/blend_list.h"

namespace weft::data {

using base::text;

std::array<std::vector<std::string>, kSplits> parse_blend_per_split(
    std::span<const std::string> written) {
  constexpr const char* kExample = "[[0.3,a,0.7,b],[c],[d]]";
  if (written.size() != kSplits) {
    throw base::ConfigError(
        text("dataset.blend_per_split has {}; three are needed, of training, validation and test, "
             "as in {} (an empty one: none for that split)",
             base::counted(std::ssize(written), "list"),
             kExample));
  }
  std::array<std::vector<std::string>, kSplits> blends;
  for (std::size_t i = 0; i < blends.size(); ++i) {
    std::optional<std::vector<std::string>> words = config::blend_words(written[i]);
    if (!words) {
      throw base::ConfigError(
          text("dataset.blend_per_split: '{}' is no list of weights and paths: write it as in {}",
               base::shown(written[i]),
               kExample));
    }
    blends[i] = std::move(*words);
  }
  if (blends.front().empty()) {
    throw base::ConfigError(
        "dataset.blend_per_split: the first list, that of training, is empty: name its data");
  }
  return blends;
}

SplitDatasets::SplitDatasets(std::array<std::unique_ptr<Dataset>, kSplits> parts)
    : parts_(std::move(parts)) {
  CHECK(part(Split::Train) != nullptr, "nothing for training");
}

std::uint64_t SplitDatasets::samples(Split split) const {
  return part(split) == nullptr ? 0 : part(split)->samples(Split::Train);
}

std::optional<std::uint64_t> SplitDatasets::tokens() const {
  std::uint64_t all = 0;
  for (const std::unique_ptr<Dataset>& one : parts_) {
    if (!one) continue;
    const std::optional<std::uint64_t> tokens = one->tokens();
    if (!tokens) return std::nullopt;
    all += *tokens;
  }
  return all;
}

void SplitDatasets::read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const {
  if (part(split) == nullptr) {
    throw base::ConfigError(
        text("dataset.blend_per_split has no data for {}: name some", word(split)));
  }
  part(split)->read(Split::Train, sample, tokens);
}

}  // namespace weft::data
