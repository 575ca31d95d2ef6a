// Typed values of one config.json, with size limits.
#pragma once

#include <cstdint>
#include <string>

#include "weft/checkpoint/tensors/strict_json.h"

namespace weft::checkpoint {

// Limits that keep the sizes of a parameter below 64 bits and the tensor table small, whatever a
// file claims.
inline constexpr std::int64_t kMostLayers = 4096;
inline constexpr std::int64_t kMostLayersAhead = 64;
inline constexpr std::int64_t kMostExperts = 1 << 16;
inline constexpr std::int64_t kMostLayersTimesExperts = 1 << 18;
inline constexpr std::int64_t kMostHeads = 1 << 16;
inline constexpr std::int64_t kLargestWidth = 1 << 20;
inline constexpr std::int64_t kLargestHead = 1 << 16;
inline constexpr std::int64_t kLargestVocabulary = 1 << 24;
inline constexpr std::int64_t kLongestSequence = std::int64_t{1} << 31;

class HuggingFaceValues {
 public:
  HuggingFaceValues(const StrictJson& config, const std::string& file)
      : config_(config), file_(file) {}

  const StrictJson* find(const char* key) const {
    const auto found = config_.find(key);
    return found == config_.end() ? nullptr : &*found;
  }
  // nullptr if absent or null.
  const StrictJson* find_value(const char* key) const {
    const StrictJson* value = find(key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  std::int64_t size(const char* key, std::int64_t absent, std::int64_t most) const {
    const StrictJson* value = find(key);
    return value == nullptr ? absent : as_integer(*value, key, file_, 1, most);
  }
  double number(const char* key, double absent, Range range) const {
    const StrictJson* value = find(key);
    return value == nullptr ? absent : as_number(*value, key, file_, range);
  }
  bool flag(const char* key, bool absent = false) const {
    const StrictJson* value = find(key);
    return value == nullptr ? absent : as_flag(*value, key, file_);
  }
  const std::string& file() const { return file_; }

 private:
  const StrictJson& config_;
  const std::string& file_;
};

}  // namespace weft::checkpoint
