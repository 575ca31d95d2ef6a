// Data of each split apart, as Megatron-LM takes them: --train-data-path, --valid-data-path and
// --test-data-path together are dataset.blend_per_split.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::words {

class SplitData {
 public:
  // The words of the line. --valid-data-path alone is dataset.valid_data_path, and not read here.
  explicit SplitData(std::span<const std::string> line);

  bool reads(std::string_view flag) const;
  void take(const std::string& flag, std::vector<std::string> words);

  bool is_given() const { return !typed_.empty(); }
  std::string typed() const;
  // One text each, as dataset.blend_per_split has them.
  std::vector<std::string> blends() const;

 private:
  bool splits_;
  std::array<std::vector<std::string>, 3> words_;
  std::vector<std::string> typed_;
};

}  // namespace weft::words
