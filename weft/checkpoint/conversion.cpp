#include "weft/checkpoint/conversion.h"

#include <algorithm>
#include <array>
#include <map>

#include "weft/base/casts.h"
#include "weft/base/crc32c.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/checkpoint/huggingface/huggingface_files.h"
#include "weft/checkpoint/new_folder.h"
#include "weft/checkpoint/optimizer_state.h"
#include "weft/checkpoint/shard.h"
#include "weft/checkpoint/state_reader.h"
#include "weft/checkpoint/step_folders.h"

namespace weft::checkpoint {
namespace {

namespace fs = std::filesystem;
using base::at;
using base::text;

constexpr std::size_t kMostUnconverted = 20;
constexpr std::int64_t kWindowElements = 2 << 20;

tensor::Shape shape_of(const Parameter& parameter) { return tensor::Shape(parameter.shape); }

// True for each trained parameter; untrained ones are fp32 everywhere and have no masters.
std::map<std::string, bool> trained_parameters(const config::ModelConfig& model) {
  std::map<std::string, bool> trained;
  for (const HuggingFaceTensor& row :
       huggingface_tensors(model, Family::Qwen3Moe, ExpertNames::Stacked)) {
    trained[row.parameter] = row.trained;
  }
  return trained;
}

// Reads parameters of a checkpoint in long stretches. If ranks hold columns of a matrix, each
// stored slice has a part of every row. One block must then serve many rows.
class StretchReader {
 public:
  StretchReader(const StoredCheckpoint& from, WeightsFrom source, const config::ModelConfig& model)
      : reader_(from.manifest, from.folder), trained_(trained_parameters(model)) {
    for (const Parameter& parameter : parameters(model)) {
      shapes_.emplace(parameter.name, shape_of(parameter));
    }
    masters_ = source == WeightsFrom::Masters;
  }

  void fetch(const std::string& parameter, std::int64_t begin, std::span<float> out) {
    while (!out.empty()) {
      const Window& window = window_of(parameter, begin);
      const std::int64_t inside = begin - window.begin;
      const std::int64_t count = std::min(std::ssize(out), std::ssize(window.values) - inside);
      std::copy_n(window.values.begin() + inside, count, out.begin());
      out = out.subspan(at(count));
      begin += count;
    }
  }

 private:
  struct Window {
    std::string parameter;
    std::int64_t begin = 0;
    std::vector<float> values;
    std::uint64_t used = 0;
  };

  const Window& window_of(const std::string& parameter, std::int64_t element) {
    const std::int64_t begin = element / kWindowElements * kWindowElements;
    ++clock_;
    for (Window& window : windows_) {
      if (window.parameter != parameter || window.begin != begin || window.values.empty()) continue;
      window.used = clock_;
      return window;
    }
    Window& oldest = *std::ranges::min_element(windows_, {}, &Window::used);
    oldest = {.parameter = parameter,
              .begin = begin,
              .values = std::move(oldest.values),
              .used = clock_};
    load(oldest);
    return oldest;
  }

  void load(Window& window) {
    tensor::Slice slice = tensor::whole_slice(shapes_.at(window.parameter));
    slice.elements = {.begin = window.begin,
                      .count = std::min(kWindowElements, slice.elements.count - window.begin)};
    window.values.resize(at(slice.elements.count));
    const bool is_master = masters_ && trained_.at(window.parameter);
    if (is_master) return read_master(reader_, window.parameter, slice, window.values);
    reader_.read("weights/" + window.parameter, slice, window.values);
  }

  StateReader reader_;
  std::map<std::string, tensor::Shape> shapes_;
  std::map<std::string, bool> trained_;
  bool masters_ = false;
  // Two parameters (the experts' first and second products) alternate by row; two windows suffice
  // for them.
  std::array<Window, 3> windows_;
  std::uint64_t clock_ = 0;
};

// Content of a shard, in order.
struct NewState {
  std::string parameter;
  NewTensor tensor;
};

std::vector<NewState> new_states(const HuggingFaceModel& from) {
  const FileDtype dtype = from.holds_only(FileDtype::BF16) ? FileDtype::BF16 : FileDtype::F32;
  const std::map<std::string, bool> trained = trained_parameters(from.config());
  std::vector<NewState> states;
  for (const Parameter& parameter : from.parameters()) {
    states.push_back({.parameter = parameter.name,
                      .tensor = {.name = "weights/" + parameter.name,
                                 .dtype = trained.at(parameter.name) ? dtype : FileDtype::F32,
                                 .shape = parameter.shape}});
  }
  return states;
}

// The only file of a weights-only checkpoint; adds its slices to the manifest.
class WeightsFile {
 public:
  WeightsFile(const HuggingFaceModel& from, const Written& written)
      : from_(from), written_(written), states_(new_states(from)) {}

  void write(const fs::path& folder, Manifest& manifest) {
    std::vector<NewTensor> tensors;
    for (const NewState& state : states_) tensors.push_back(state.tensor);
    const std::string name = shard_name(0);
    std::size_t next = 0;
    const std::string header =
        write_safetensors(folder / name,
                          tensors,
                          [&](const NewTensor&, const base::Append& append) {
                            checksums_.push_back(append_state(states_[next++], append));
                          });
    std::uint64_t place = header.size();
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const NewTensor& tensor = states_[i].tensor;
      const tensor::Shape shape(tensor.shape);
      StoredSlice slice{.at = place,
                        .slice = tensor::whole_slice(shape),
                        .checksums = std::move(checksums_[i])};
      place += bytes_of(slice, tensor.dtype);
      manifest.states[tensor.name] = {.dtype = tensor.dtype,
                                      .shape = shape,
                                      .slices = {std::move(slice)}};
    }
    manifest.files.push_back({.name = name,
                              .bytes = place,
                              .header_bytes = header.size(),
                              .header_checksum = base::crc32c(header)});
  }

 private:
  // Appends block by block; returns the checksums.
  std::vector<std::uint32_t> append_state(const NewState& state, const base::Append& append) {
    const auto most = static_cast<std::int64_t>(kBlockBytes / element_bytes(state.tensor.dtype));
    const std::int64_t elements = tensor::Shape(state.tensor.shape).elements();
    std::vector<std::uint32_t> checksums;
    for (std::int64_t begin = 0; begin < elements; begin += most) {
      values_.resize(at(std::min(most, elements - begin)));
      from_.read(state.parameter, begin, values_);
      const std::string_view block = stored(values_, state.tensor.dtype, narrow_);
      checksums.push_back(base::crc32c(block));
      append(block);
      written_(done_ += block.size());
    }
    return checksums;
  }

  const HuggingFaceModel& from_;
  const Written& written_;
  const std::vector<NewState> states_;
  std::vector<std::vector<std::uint32_t>> checksums_;  // by state
  std::vector<float> values_;
  std::vector<std::uint16_t> narrow_;
  std::uint64_t done_ = 0;
};

}  // namespace

void require_weights(const StoredCheckpoint& from,
                     const config::ModelConfig& model,
                     WeightsFrom source) {
  std::vector<std::string> complaints;
  const std::map<std::string, bool> trained = trained_parameters(model);
  const bool has_remainders = forms_in(from.manifest).masters == StoredMasters::Remainders;
  const char* masters = has_remainders ? "optimizer.remainder/" : "optimizer.master/";
  for (const Parameter& parameter : parameters(model)) {
    const bool is_master = source == WeightsFrom::Masters && trained.at(parameter.name);
    const std::string name = (is_master ? masters : "weights/") + parameter.name;
    const auto found = from.manifest.states.find(name);
    const std::string expected = shape_of(parameter).print();
    if (found == from.manifest.states.end()) {
      complaints.push_back(
          text("'{}' has no tensor '{}' of shape {}", from.folder.string(), name, expected));
    } else if (found->second.shape != shape_of(parameter)) {
      complaints.push_back(text("'{}': tensor '{}' has shape {}; {} expected from its config",
                                from.folder.string(),
                                name,
                                found->second.shape.print(),
                                expected));
    }
  }
  if (complaints.empty()) return;
  const std::size_t all = complaints.size();
  if (all > kMostUnconverted) {
    complaints.resize(kMostUnconverted);
    complaints.push_back(text("and {} more", all - kMostUnconverted));
  }
  throw base::ConfigError(std::move(complaints));
}

void convert_to_huggingface(const StoredCheckpoint& from,
                            WeightsFrom source,
                            const HuggingFaceConfig& config,
                            const Target& out,
                            const Written& written) {
  StretchReader reader(from, source, config.model);
  NewFolder folder(out.path, out.overwrite, is_of_the_model);
  const std::uint64_t size = config.model.params_dtype == base::DType::F32 ? 4 : 2;
  std::uint64_t done = 0;
  write_huggingface(folder.path(),
                    config,
                    [&](const std::string& parameter, std::int64_t begin, std::span<float> values) {
                      reader.fetch(parameter, begin, values);
                      written(done += values.size() * size);
                    });
  if (!out.text_from.empty()) copy_text_files(out.text_from, folder.path());
  folder.finish();
}

Manifest convert_to_checkpoint(const HuggingFaceModel& from,
                               const std::string& config,
                               const Target& out,
                               const Written& written) {
  NewFolder folder(out.path, out.overwrite, is_of_checkpoints);
  const fs::path step = make_step_folder(folder.path(), 0);
  Manifest manifest;
  manifest.config = config;
  manifest.layout = {{"world", 1}};
  WeightsFile(from, written).write(step, manifest);
  base::write_whole(step / kManifestName, manifest_text(manifest));
  base::sync_folder(step);
  write_tracker(folder.path(), 0);
  folder.finish();
  return manifest;
}

}  // namespace weft::checkpoint
