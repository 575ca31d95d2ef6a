// Several data sets as one: dataset.blend. Which of them a sample comes from is Megatron's rule:
// each sample goes to the data set that is furthest behind its weight. For sample i (counted from
// 0) that is the one with the largest weight * max(i, 1) - taken, the first of several; `taken` is
// the number of samples it has given before, and its next sample is that number.
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

// Data sets of a blend; samples, of all of them together. What is needed for any position is
// computed from the first sample on: a second or so for every hundred million.
inline constexpr std::size_t kMostBlended = 512;
inline constexpr std::uint64_t kMostBlendedSamples = std::uint64_t{1} << 34;

struct Blend {
  std::vector<std::string> paths;
  std::vector<double> weights;  // of each path, above 0; none: by the number of their samples
};

// Megatron's list: weights and paths in turn, [0.3,a,0.7,b], or paths alone. A list of odd length,
// and one whose first, third, ... words are no numbers, has no weights. Paths of weight 0 are left
// out. ConfigError where a weight is negative or not finite, all are 0, or there are too many.
Blend parse_blend(std::span<const std::string> words);

// Who gives which sample. Any thread may ask for any sample; those near the last ones asked for
// cost least.
class BlendOrder {
 public:
  // Above 0; they need not add up to 1.
  explicit BlendOrder(std::vector<double> weights);

  struct Place {
    std::size_t part = 0;
    std::uint64_t sample = 0;  // of the part
    bool operator==(const Place&) const = default;
  };
  // ConfigError from kMostBlendedSamples on.
  Place place(std::uint64_t sample) const;

 private:
  static constexpr std::uint64_t kWindow = 4096;
  static constexpr std::size_t kWindows = 4, kMostMarks = 1024;

  // Samples that each part has given before sample `at`. Doubles are exact for these numbers.
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
  // States at the multiples of interval_; where there are many every other one goes.
  mutable std::vector<State> marks_;
  mutable std::uint64_t interval_ = kWindow, clock_ = 0;
  mutable State last_;  // behind the window that was made last
  mutable std::array<Window, kWindows> windows_;
};

class BlendedDataset : public Dataset {
 public:
  // Of each part its data set. ConfigError where one has no sample for training.
  BlendedDataset(Blend blend, std::vector<std::unique_ptr<Dataset>> parts);

  std::uint64_t samples(Split split) const override;
  std::optional<std::uint64_t> tokens() const override;
  // ConfigError where a part has no sample of the split.
  void read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const override;

 private:
  std::optional<std::size_t> part_without(Split split) const;

  Blend blend_;
  std::vector<std::unique_ptr<Dataset>> parts_;
  std::array<std::unique_ptr<BlendOrder>, kSplits> orders_;  // none where a part has no sample
};

}  // namespace weft::data
