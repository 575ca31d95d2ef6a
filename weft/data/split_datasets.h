// Separate data sets for training, validation and test: dataset.blend_per_split.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/data/dataset.h"

namespace weft::data {

// Words of each split's blend (blend.h); empty: no data. Throws ConfigError unless there are three
// lists and training has data.
std::array<std::vector<std::string>, kSplits> parse_blend_per_split(
    std::span<const std::string> written);

class SplitDatasets : public Dataset {
 public:
  // One data set per split, whose samples are all in its Split::Train; nullptr: empty split.
  explicit SplitDatasets(std::array<std::unique_ptr<Dataset>, kSplits> parts);

  std::uint64_t samples(Split split) const override;
  std::optional<std::uint64_t> tokens() const override;
  void read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const override;

 private:
  const Dataset* part(Split split) const { return parts_[static_cast<std::size_t>(split)].get(); }

  std::array<std::unique_ptr<Dataset>, kSplits> parts_;
};

}  // namespace weft::data
