// Families that are known by their shapes alone: what the keys of their config.json say of a model.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/checkpoint/huggingface_values.h"
#include "weft/config/model_config.h"

namespace weft::checkpoint {

// The values of one config.json. Remembers which keys were asked for, so that the others can be
// told of.
class ShapeValues {
 public:
  ShapeValues(const StrictJson& config, const std::string& file)
      : config_(config), file_(file), values_(config, file) {}

  const std::string& file() const { return file_; }
  // Null counts as absent.
  const StrictJson* find(const char* key);
  // ConfigError where the key is missing.
  std::int64_t size(const char* key, std::int64_t most);
  std::int64_t size_or(const char* key, std::int64_t absent, std::int64_t most);
  std::int64_t count_or(const char* key, std::int64_t absent, std::int64_t most);  // from 0
  double number_or(const char* key, double absent, Range range);
  bool flag_or(const char* key, bool absent);
  // ConfigError, with the reason, unless the key is absent or false.
  void expect_off(const char* key, const char* why);
  // Asked for by somebody else.
  void note(std::string_view key) { asked_.emplace(key); }

  // Keys that say something and that no one asked for.
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
  // Everything but what all families share: layers, widths, vocabulary, positions.
  void (*read)(ShapeValues& values, config::ModelConfig& model);
};

std::span<const ShapeFamily> shape_families();

// Key and value heads, and the width of a head.
void read_shape_heads(ShapeValues& values, config::ModelConfig& model);
// Positions: the base, the share of a head that turns, YaRN. Other stretches change no shape.
void read_shape_rope(ShapeValues& values, config::ModelConfig& model);

}  // namespace weft::checkpoint
