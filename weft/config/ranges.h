// The numbers a key may hold at all, whatever the other keys say.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"

namespace weft::config {

// The ends that belong to the range: [low, high], (low, high] or [low, high).
enum class Ends { Both, High, Low };

struct Range {
  std::string_view key;
  double low;
  double high;
  Ends ends = Ends::Both;
};

// One range for every key that holds numbers.
std::span<const Range> ranges();

struct OutOfRange {
  std::string key;
  std::string complaint;
  std::string fix;
};

// Every number that is outside its range or not finite. Null optionals are inside.
std::vector<OutOfRange> numbers_out_of_range(const Config& config);

}  // namespace weft::config
