// Blend: several data sets as one (dataset.blend). As in Megatron, each sample comes from the data
// set furthest behind its weight. Sample i (from 0): the largest weight * max(i, 1) - taken, the
// first of several. `taken` counts the samples that it gave before, and is the number of its next
// sample.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/data/dataset.h"

namespace weft::data {

// Limits: data sets per blend, and samples of all together. A position is computed from the first
// sample on: about a second per hundred million samples.
inline constexpr std::size_t kMostBlended = 512;
inline constexpr std::uint64_t kMostBlendedSamples = std::uint64_t{1} << 34;

struct Blend {
  std::vector<std::string> paths;
  std::vector<double> weights;  // per path, above 0; empty: by number of samples
};

// Parses Megatron's list: weights and paths in turn, [0.3,a,0.7,b], or paths alone. A list has no
// weights if its length is odd or a weight is no number. Paths of weight 0 are dropped. Throws
// ConfigError if a weight is negative or not finite, all are 0, or there are too many.
Blend parse_blend(std::span<const std::string> words);

// Source of each sample. Thread-safe random access; samples near the latest ones are cheapest.
class BlendOrder {
 public:
  // Weights are above 0; their sum may differ from 1.
  explicit BlendOrder(std::vector<double> weights);

  struct Place {
    std::size_t part = 0;
    std::uint64_t sample = 0;  // index within the part
    bool operator==(const Place&) const = default;
  };
  // Throws ConfigError from kMostBlendedSamples on.
  Place place(std::uint64_t sample) const;

 private:
  static constexpr std::uint64_t kWindow = 4096;
  static constexpr std::size_t kWindows = 4, kMostMarks = 1024;

  // Samples that each part gave before sample `at`; doubles are exact for these numbers.
  struct State {
    std::uint64_t at = 0;
    std::vector<double> taken;
  };
  struct Window {
    std::uint64_t first = 0, used = 0;
    std::vector<Place> places;
  };

  std::size_t next_part(State& state) const;
  State state_at(std::uint64_t sample) const;
  void mark(const State& state) const;
  const Window& window_of(std::uint64_t sample) const;

  std::vector<double> weights_;
  mutable std::mutex mutex_;
  // States at multiples of interval_; when there are too many, every second one is dropped.
  mutable std::vector<State> marks_;
  mutable std::uint64_t interval_ = kWindow, clock_ = 0;
  mutable State last_;  // end of the window made last
  mutable std::array<Window, kWindows> windows_;
};

class BlendedDataset : public Dataset {
 public:
  // One data set per part. Throws ConfigError if a part has no training sample.
  BlendedDataset(Blend blend, std::vector<std::unique_ptr<Dataset>> parts);

  std::uint64_t samples(Split split) const override;
  std::optional<std::uint64_t> tokens() const override;
  // Throws ConfigError if a part has no sample of the split.
  void read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const override;

 private:
  std::optional<std::size_t> part_without(Split split) const;

  Blend blend_;
  std::vector<std::unique_ptr<Dataset>> parts_;
  // nullptr: a part has no sample of the split
  std::array<std::unique_ptr<BlendOrder>, kSplits> orders_;
};

}  // namespace weft::data
