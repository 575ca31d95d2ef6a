#include "weft/data/splits.h"

#include <cmath>

#include "weft/base/check.h"

namespace weft::data {

using base::text;

SplitShares parse_split(const std::string& written) {
  const auto reject = [&](const std::string& what) {
    throw base::ConfigError(
        text("dataset.split='{}': {}; give the shares of training, validation and test, such as "
             "969,30,1",
             base::shown(written),
             what));
  };
  const std::vector<std::string> words = base::split(written, ',');
  if (words.size() > 3) reject(text("{} shares, and there are three splits", words.size()));
  SplitShares shares{};
  double sum = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::optional<double> share = base::parse_number(words[i]);
    if (!share || !std::isfinite(*share)) {
      reject(text("'{}' is no number", base::shown(words[i])));
    }
    if (*share < 0) reject(text("{} is negative", *share));
    shares[i] = *share;
    sum += *share;
  }
  if (sum <= 0 || !std::isfinite(sum)) reject(text("the shares add up to {}", sum));
  for (double& share : shares) share /= sum;
  return shares;
}

std::array<SequenceRange, 3> split_ranges(const SplitShares& shares, std::uint64_t sequences) {
  const auto place = [&](double share) {
    const double at = std::nearbyint(share * static_cast<double>(sequences));
    return std::min(sequences, static_cast<std::uint64_t>(at));
  };
  std::array<SequenceRange, 3> ranges;
  double sum = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    ranges[i].begin = place(sum);
    sum += shares[i];
    ranges[i].end = place(sum);
  }
  return ranges;
}

}  // namespace weft::data
