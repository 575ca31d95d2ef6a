#include "weft/checkpoint/huggingface/huggingface.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/checkpoint/huggingface/huggingface_files.h"

namespace weft::checkpoint {
namespace {

namespace fs = std::filesystem;
using base::text;

constexpr std::size_t kLargestConfig = 1u << 20;
constexpr std::int64_t kFetchElements = 1 << 18;

TensorSource source_of(const SafetensorsFolder& weights) {
  return {.name = weights.name(),
          .prefix = "",
          .tensor_names = weights.tensor_names(),
          .find = [&weights](std::string_view tensor) { return weights.find(tensor); }};
}

// Tensors of model.safetensors, parallel to `rows`.
std::vector<NewTensor> new_tensors(const HuggingFaceConfig& config,
                                   const std::vector<HuggingFaceTensor>& rows) {
  const FileDtype dtype =
      config.model.params_dtype == base::DType::F32 ? FileDtype::F32 : FileDtype::BF16;
  std::vector<NewTensor> tensors;
  for (const HuggingFaceTensor& row : rows) {
    tensors.push_back({row.name, row.trained ? dtype : FileDtype::F32, row.shape});
  }
  return tensors;
}

std::uint64_t new_bytes_of(const NewTensor& tensor) {
  std::uint64_t bytes = element_bytes(tensor.dtype);
  for (const std::int64_t dim : tensor.shape) bytes *= static_cast<std::uint64_t>(dim);
  return bytes;
}

// End index of each file's tensors: a file takes tensors up to the size limit.
std::vector<std::size_t> file_ends(const std::vector<NewTensor>& tensors, std::uint64_t most) {
  std::vector<std::size_t> ends;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (bytes > 0 && bytes + new_bytes_of(tensors[i]) > most) {
      ends.push_back(i);
      bytes = 0;
    }
    bytes += new_bytes_of(tensors[i]);
  }
  ends.push_back(tensors.size());
  return ends;
}

// Index of the tensors' files in Transformers' format.
std::string index_text(const std::vector<NewTensor>& tensors,
                       const std::vector<std::size_t>& ends) {
  std::uint64_t bytes = 0;
  base::Json files = base::Json::object();
  for (std::size_t i = 0, file = 0; i < tensors.size(); ++i) {
    if (i == ends[file]) ++file;
    files[tensors[i].name] = weights_file_name(file, ends.size());
    bytes += new_bytes_of(tensors[i]);
  }
  return base::Json{{"metadata", {{"total_size", bytes}}}, {"weight_map", files}}.dump(2) + "\n";
}

}  // namespace

std::uint64_t huggingface_bytes(const HuggingFaceConfig& config) {
  std::uint64_t bytes = 0;
  for (const NewTensor& tensor :
       new_tensors(config,
                   huggingface_tensors(config.model, config.family, ExpertNames::Separate))) {
    bytes += new_bytes_of(tensor);
  }
  return bytes;
}

HuggingFaceConfig read_huggingface_config(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  return parse_huggingface_config(base::read_text(file, kLargestConfig), file.string());
}

HuggingFaceModel::HuggingFaceModel(const fs::path& folder)
    : config_(read_huggingface_config(folder)),
      weights_(folder),
      source_(config_, source_of(weights_)) {}

std::string HuggingFaceModel::remark() const {
  if (source_.left_out() == 0) return "";
  return text(
      "'{}': {} of the {} after the last, for tokens further ahead, left out: "
      "multi-token prediction is not built yet",
      weights_.name(),
      base::counted(static_cast<std::int64_t>(source_.left_out()), "tensor"),
      base::plural(config_.layers_ahead, "layer"));
}

void write_huggingface(const fs::path& folder,
                       const HuggingFaceConfig& config,
                       const Fetch& fetch,
                       std::uint64_t most_file_bytes) {
  const std::string config_text = huggingface_config_text(config);
  const std::vector<HuggingFaceTensor> rows =
      huggingface_tensors(config.model, config.family, ExpertNames::Separate);
  const std::vector<NewTensor> tensors = new_tensors(config, rows);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw base::SystemError(text("cannot make folder '{}': {}", folder.string(), error.message()));
  }
  std::vector<float> values;
  std::vector<std::uint16_t> narrow;
  auto row = rows.begin();
  const std::vector<std::size_t> ends = file_ends(tensors, most_file_bytes);
  std::size_t begin = 0;
  for (std::size_t file = 0; file < ends.size(); ++file) {
    write_safetensors(
        folder / weights_file_name(file, ends.size()),
        std::span(tensors).subspan(begin, ends[file] - begin),
        [&](const NewTensor& tensor, const base::Append& append) {
          const std::int64_t elements = row->elements();
          for (std::int64_t at = 0; at < elements; at += kFetchElements) {
            values.resize(static_cast<std::size_t>(std::min(kFetchElements, elements - at)));
            fetch(row->parameter, row->begin + at, values);
            append(stored(values, tensor.dtype, narrow));
          }
          ++row;
        });
    begin = ends[file];
  }
  if (ends.size() > 1) base::write_whole(folder / kWeightsIndexName, index_text(tensors, ends));
  base::write_whole(folder / "config.json", config_text);
}

}  // namespace weft::checkpoint
