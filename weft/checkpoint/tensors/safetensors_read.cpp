#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/checkpoint/tensors/safetensors.h"
#include "weft/checkpoint/tensors/strict_json.h"

namespace weft::checkpoint {
namespace {

namespace fs = std::filesystem;
using base::text;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr std::size_t kMostFiles = 4096;

// Reads from a file, with offsets relative to `origin`.
ReadBytes bytes_of(std::shared_ptr<const base::InputFile> file, std::uint64_t origin) {
  return [file = std::move(file), origin](std::uint64_t begin, std::span<std::byte> out) {
    file->read(origin + begin, out);
  };
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// True if a name from an index, which is joined to the folder, cannot lead out of it.
bool is_plain_name(const std::string& name) {
  return name.ends_with(".safetensors") && name.size() < 256 && name.front() != '.' &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const fs::path& path)
    : name_(path.string()),
      file_(std::make_shared<base::InputFile>(path)),
      tensors_(parse_header(bytes_of(file_, 0), file_->size(), name_)) {}

std::optional<TensorView> SafetensorsFile::find(std::string_view tensor) const {
  const auto found = tensors_.find(tensor);
  if (found == tensors_.end()) return std::nullopt;
  const StoredTensor& stored = found->second;
  return TensorView{.where = text("'{}': tensor '{}'", name_, base::shown(tensor)),
                    .dtype = stored.dtype,
                    .shape = stored.shape,
                    .bytes = stored.end - stored.begin,
                    .read = bytes_of(file_, stored.begin)};
}

TensorView SafetensorsFile::get(std::string_view tensor) const {
  std::optional<TensorView> found = find(tensor);
  if (!found)
    throw base::ConfigError(text("'{}': tensor '{}' is missing", name_, base::shown(tensor)));
  return *std::move(found);
}

SafetensorsFolder::SafetensorsFolder(const fs::path& folder) : name_(folder.string()) {
  if (is_there(folder / kSingle) || !is_there(folder / kIndex)) {
    files_.emplace_back(folder / kSingle);
    for (const auto& [tensor, stored] : files_[0].tensors()) file_of_.emplace(tensor, 0);
  } else {
    open_listed(folder, folder / kIndex);
  }
}

void SafetensorsFolder::open_listed(const fs::path& folder, const fs::path& index) {
  const std::string index_name = index.string();
  const StrictJson parsed = parse_object(base::read_text(index), index_name);
  const StrictJson& weight_map = member(parsed, "weight_map", index_name);
  if (!weight_map.is_object()) throw_wrong_value(weight_map, "weight_map", index_name, "an object");
  std::map<std::string, std::size_t> opened;
  for (const auto& [tensor, value] : weight_map.items()) {
    const std::string& file =
        as_word(value, text("weight_map of '{}'", base::shown(tensor)), index_name);
    if (!is_plain_name(file)) {
      throw_wrong_value(value,
                        text("weight_map of '{}'", base::shown(tensor)),
                        index_name,
                        "a *.safetensors of the folder");
    }
    const auto [place, is_new] = opened.emplace(file, files_.size());
    if (is_new && files_.size() == kMostFiles) {
      throw base::ConfigError(text("'{}' lists more than {} files", index_name, kMostFiles));
    }
    if (is_new) files_.emplace_back(folder / file);
    files_[place->second].get(tensor);
    file_of_.emplace(tensor, place->second);
  }
  for (const SafetensorsFile& file : files_) {
    for (const auto& [tensor, stored] : file.tensors()) {
      const auto listed = file_of_.find(tensor);
      if (listed == file_of_.end() || &files_[listed->second] != &file) {
        throw base::ConfigError(
            text("'{}' holds tensor '{}', which '{}' does not list there; mend the weight_map",
                 file.name(),
                 base::shown(tensor),
                 index_name));
      }
    }
  }
}

std::vector<std::string> SafetensorsFolder::tensor_names() const {
  std::vector<std::string> names;
  names.reserve(file_of_.size());
  for (const auto& [tensor, file] : file_of_) names.push_back(tensor);
  return names;
}

std::optional<TensorView> SafetensorsFolder::find(std::string_view tensor) const {
  const auto found = file_of_.find(tensor);
  if (found == file_of_.end()) return std::nullopt;
  return files_[found->second].find(tensor);
}

}  // namespace weft::checkpoint
