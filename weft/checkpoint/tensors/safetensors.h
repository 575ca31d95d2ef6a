// safetensors: u64 header length, a JSON header {name: {dtype, shape, data_offsets}}, then the
// tensors' bytes back to back. Files are untrusted: ConfigError with file, tensor and numbers.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/base/files/file.h"
#include "weft/checkpoint/tensors/file_tensor.h"

namespace weft::checkpoint {

struct StoredTensor {
  FileDtype dtype;
  Shape shape;
  std::size_t begin;  // byte offset in the file
  std::size_t end;
};

using StoredTensors = std::map<std::string, StoredTensor, std::less<>>;

// Tensors of a file of `file_bytes` bytes. Checks the format: known dtypes, sizes that match the
// shapes, and data that fills the file without overlap or hole.
StoredTensors parse_header(const ReadBytes& read,
                           std::uint64_t file_bytes,
                           const std::string& name);

// One open file; reads tensors on demand.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::string& name() const { return name_; }
  const StoredTensors& tensors() const { return tensors_; }
  std::optional<TensorView> find(std::string_view tensor) const;
  // ConfigError if it is missing.
  TensorView get(std::string_view tensor) const;

 private:
  std::string name_;
  std::shared_ptr<const base::InputFile> file_;  // shared with every TensorView of it
  StoredTensors tensors_;
};

// Weights of a folder: model.safetensors, otherwise the files in model.safetensors.index.json.
// Reads tensors on demand.
class SafetensorsFolder {
 public:
  explicit SafetensorsFolder(const std::filesystem::path& folder);

  const std::string& name() const { return name_; }
  std::vector<std::string> tensor_names() const;
  std::optional<TensorView> find(std::string_view tensor) const;

 private:
  void open_listed(const std::filesystem::path& folder, const std::filesystem::path& index);

  std::string name_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, std::size_t, std::less<>> file_of_;
};

struct NewTensor {
  std::string name;
  FileDtype dtype;
  Shape shape;
};

// Writes a file, complete or not at all. `write` is called for each tensor in turn and appends
// exactly its bytes. Returns the bytes before the first tensor.
std::string write_safetensors(
    const std::filesystem::path& path,
    std::span<const NewTensor> tensors,
    const std::function<void(const NewTensor& tensor, const base::Append& append)>& write);

}  // namespace weft::checkpoint
