// Hugging Face folder: config.json and safetensors, read and written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/checkpoint/huggingface/huggingface_config.h"
#include "weft/checkpoint/parameter_source.h"
#include "weft/checkpoint/tensors/safetensors.h"

namespace weft::checkpoint {

// Reads config.json of a folder.
HuggingFaceConfig read_huggingface_config(const std::filesystem::path& folder);

// Opened folder; reads tensors on demand.
class HuggingFaceModel {
 public:
  explicit HuggingFaceModel(const std::filesystem::path& folder);

  Family family() const { return config_.family; }
  const config::ModelConfig& config() const { return config_.model; }
  const HuggingFaceConfig& huggingface_config() const { return config_; }
  const std::vector<Parameter>& parameters() const { return source_.parameters(); }
  // True if every trained weight is stored in this dtype.
  bool holds_only(FileDtype dtype) const { return source_.holds_only(dtype); }
  // Remark for the user about unused weights in the folder. Empty: none.
  std::string remark() const;

  // Reads the elements [begin, begin + out.size()) of a parameter named as in
  // huggingface_tensors.h.
  void read(std::string_view parameter, std::int64_t begin, std::span<float> out) const {
    source_.read(parameter, begin, out);
  }

 private:
  HuggingFaceConfig config_;
  SafetensorsFolder weights_;
  ParameterSource source_;
};

// Provides the elements [begin, begin + out.size()) of a parameter.
using Fetch =
    std::function<void(const std::string& parameter, std::int64_t begin, std::span<float> out)>;

// Size of the model's model.safetensors without its header.
std::uint64_t huggingface_bytes(const HuggingFaceConfig& config);

// File size limit, as in Transformers.
inline constexpr std::uint64_t kMostFileBytes = 5'000'000'000;

// Writes the weights in params_dtype, then config.json; makes the folder if needed. Each file
// appears complete or not at all. Weights go to model.safetensors, or to several files with an
// index if it would exceed `most_file_bytes`. `fetch` is called in tensor order, in pieces of
// bounded size.
void write_huggingface(const std::filesystem::path& folder,
                       const HuggingFaceConfig& config,
                       const Fetch& fetch,
                       std::uint64_t most_file_bytes = kMostFileBytes);

}  // namespace weft::checkpoint
