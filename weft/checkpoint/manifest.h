// Manifest of a checkpoint: place of each slice. manifest.json is written last, so a folder with
// one is complete. Its content is untrusted: ConfigError with file, key and numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/checkpoint/tensors/file_tensor.h"
#include "weft/tensor/slice.h"

namespace weft::checkpoint {

inline constexpr const char* kManifestName = "manifest.json";

inline constexpr std::size_t kMostManifestBytes = std::size_t{256} << 20;

// Block with its own checksum: reading part of a slice reads and checks whole blocks.
inline constexpr std::uint64_t kBlockBytes = 1 << 20;

struct StoredFile {
  std::string name;  // name in the folder
  std::uint64_t bytes = 0;
  std::uint64_t header_bytes = 0;  // bytes before the first tensor
  std::uint32_t header_checksum = 0;
};

// Part of a global tensor, stored under the tensor's name.
struct StoredSlice {
  std::size_t file = 0;  // index in Manifest::files
  std::uint64_t at = 0;  // byte offset in the file
  tensor::Slice slice;
  std::vector<std::uint32_t> checksums;  // one per block
};

struct StoredState {
  FileDtype dtype = FileDtype::F32;
  tensor::Shape shape;
  std::vector<StoredSlice> slices;  // cover the tensor; overlaps hold equal values
};

struct Manifest {
  std::int64_t step = 0;                       // steps done
  std::int64_t samples = 0;                    // sequences consumed: the position in the data
  std::int64_t seed = 0;                       // whole random state
  std::uint32_t checksum = 0;                  // checksum of its own text, after reading
  std::optional<std::uint32_t> follows;        // checksum of the previous checkpoint's manifest
  std::map<std::string, std::int64_t> layout;  // layout of the writing run, for people
  std::string config;                          // resolved YAML
  std::vector<StoredFile> files;
  std::map<std::string, StoredState, std::less<>> states;
};

// Text form with a checksum at the end, and its inverse; `name` is for errors.
std::string manifest_text(const Manifest& manifest);
Manifest parse_manifest(std::string_view text, const std::string& name);

// Reads the manifest of a step's folder. If damaged: ConfigError with the way back to the previous
// checkpoint.
Manifest read_manifest(const std::filesystem::path& folder);

// Checksum of the manifest only, unique to its content; nullopt: no such file.
std::optional<std::uint32_t> manifest_checksum(const std::filesystem::path& folder);

bool names_file(const Manifest& manifest, std::string_view name);

// Errors of the files in a step's folder, judged by size.
std::vector<std::string> wrong_files(const std::filesystem::path& folder, const Manifest& manifest);

// Merges another rank's files and slices.
void add_part(Manifest& manifest, Manifest part);

// First state with incomplete slices; empty: none.
std::string uncovered_state(const Manifest& manifest);

// "world 4, tp 2, ...": sizes above 1 of the writing layout.
std::string layout_text(const Manifest& manifest);

std::uint64_t bytes_of(const StoredSlice& slice, FileDtype dtype);

}  // namespace weft::checkpoint
