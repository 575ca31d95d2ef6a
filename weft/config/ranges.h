// Range of each numeric key, independent of other keys.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"

namespace weft::config {

// Ends that belong to the range: [low, high], (low, high] or [low, high).
enum class Ends { Both, High, Low };

struct Range {
  std::string_view key;
  double low;
  double high;
  Ends ends = Ends::Both;
};

// One range per numeric key.
std::span<const Range> ranges();

struct OutOfRange {
  std::string key;
  std::string complaint;
  std::string fix;
};

// All numbers that are out of range or not finite. Null optionals are in range.
std::vector<OutOfRange> numbers_out_of_range(const Config& config);

}  // namespace weft::config
