// Families known by shape only: the meaning of their config.json keys.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/checkpoint/huggingface/huggingface_values.h"
#include "weft/config/model_config.h"

namespace weft::checkpoint {

// Values of one config.json; records the used keys, so that the others can be reported.
class ShapeValues {
 public:
  ShapeValues(const StrictJson& config, const std::string& file)
      : config_(config), file_(file), values_(config, file) {}

  const std::string& file() const { return file_; }
  // nullptr if absent or null.
  const StrictJson* find(const char* key);
  // ConfigError if the key is missing.
  std::int64_t size(const char* key, std::int64_t most);
  std::int64_t size_or(const char* key, std::int64_t absent, std::int64_t most);
  std::int64_t count_or(const char* key, std::int64_t absent, std::int64_t most);  // from 0
  double number_or(const char* key, double absent, Range range);
  bool flag_or(const char* key, bool absent);
  // ConfigError with the reason, unless the key is absent or false.
  void expect_off(const char* key, const char* why);
  // Marks a key that other code uses.
  void note(std::string_view key) { asked_.emplace(key); }

  // Unused keys with a non-empty value.
  std::vector<std::string> unasked() const;
  const HuggingFaceValues& values() const { return values_; }

  std::vector<std::string> remarks;

 private:
  const StrictJson& config_;
  const std::string& file_;
  HuggingFaceValues values_;
  std::set<std::string, std::less<>> asked_;
};

struct ShapeFamily {
  std::string_view model_type;
  // Reads everything except the keys common to all families: layers, widths, vocabulary, positions.
  void (*read)(ShapeValues& values, config::ModelConfig& model);
};

std::span<const ShapeFamily> shape_families();

// Reads the key and value heads, and the head width.
void read_shape_heads(ShapeValues& values, config::ModelConfig& model);
// Reads positions: base, rotary share of a head, YaRN. Other scalings do not change a shape.
void read_shape_rope(ShapeValues& values, config::ModelConfig& model);

}  // namespace weft::checkpoint
