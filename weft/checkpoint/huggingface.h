// A Hugging Face folder: config.json and safetensors, in and out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/checkpoint/huggingface_config.h"
#include "weft/checkpoint/parameter_source.h"
#include "weft/checkpoint/safetensors.h"

namespace weft::checkpoint {

// config.json of a folder.
HuggingFaceConfig read_huggingface_config(const std::filesystem::path& folder);

// An opened folder. Only what is asked for is read.
class HuggingFaceModel {
 public:
  explicit HuggingFaceModel(const std::filesystem::path& folder);

  Family family() const { return config_.family; }
  const config::ModelConfig& config() const { return config_.model; }
  const HuggingFaceConfig& huggingface_config() const { return config_; }
  const std::vector<Parameter>& parameters() const { return source_.parameters(); }
  // Whether every weight is stored so; what is not trained is not asked for.
  bool holds_only(FileDtype dtype) const { return source_.holds_only(dtype); }
  // What to tell whoever runs it: of weights that the folder has and nothing computes. Empty: none.
  std::string remark() const;

  // Elements [begin, begin + out.size()) of a parameter named as in huggingface_tensors.h.
  void read(std::string_view parameter, std::int64_t begin, std::span<float> out) const {
    source_.read(parameter, begin, out);
  }

 private:
  HuggingFaceConfig config_;
  SafetensorsFolder weights_;
  ParameterSource source_;
};

// Gives the elements [begin, begin + out.size()) of a parameter.
using Fetch =
    std::function<void(const std::string& parameter, std::int64_t begin, std::span<float> out)>;

// What model.safetensors of that model takes on the disk, its header left out.
std::uint64_t huggingface_bytes(const HuggingFaceConfig& config);

inline constexpr std::uint64_t kMostFileBytes = 5'000'000'000;  // as Transformers cuts them

// Writes the weights (in params_dtype) and then config.json, each file whole or not at all, and
// makes the folder where there is none. One file model.safetensors, or where that would be larger
// than `most_file_bytes` several with their index. `fetch` is called in the order of the tensors,
// for pieces of bounded size.
void write_huggingface(const std::filesystem::path& folder,
                       const HuggingFaceConfig& config,
                       const Fetch& fetch,
                       std::uint64_t most_file_bytes = kMostFileBytes);

}  // namespace weft::checkpoint
