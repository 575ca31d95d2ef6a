// Data sets of training, validation and test apart: dataset.blend_per_split.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/data/dataset.h"

namespace weft::data {

// The words of each split's blend (blend.h); none where it has no data. ConfigError where there are
// not three lists, or training has none.
std::array<std::vector<std::string>, kSplits> parse_blend_per_split(
    std::span<const std::string> written);

class SplitDatasets : public Dataset {
 public:
  // Of each split a data set whose samples are all in its split Train; none: it has no sample.
  explicit SplitDatasets(std::array<std::unique_ptr<Dataset>, kSplits> parts);

  std::uint64_t samples(Split split) const override;
  std::optional<std::uint64_t> tokens() const override;
  void read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const override;

 private:
  const Dataset* part(Split split) const { return parts_[static_cast<std::size_t>(split)].get(); }

  std::array<std::unique_ptr<Dataset>, kSplits> parts_;
};

}  // namespace weft::data
