// What lies where in a checkpoint: manifest.json, written last, so that a folder that has one is
// whole. Nothing in it is trusted: ConfigError names the file, the key and the numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/checkpoint/file_tensor.h"
#include "weft/tensor/slice.h"

namespace weft::checkpoint {

inline constexpr const char* kManifestName = "manifest.json";

inline constexpr std::size_t kMostManifestBytes = std::size_t{256} << 20;

// Bytes of a slice that have a checksum of their own: who reads a part of a slice reads and checks
// whole blocks.
inline constexpr std::uint64_t kBlockBytes = 1 << 20;

struct StoredFile {
  std::string name;  // in the folder
  std::uint64_t bytes = 0;
  std::uint64_t header_bytes = 0;  // before the first tensor
  std::uint32_t header_checksum = 0;
};

// A part of a global tensor. In its file it has the global tensor's name.
struct StoredSlice {
  std::size_t file = 0;  // of Manifest::files
  std::uint64_t at = 0;  // byte of the file
  tensor::Slice slice;
  std::vector<std::uint32_t> checksums;  // of each block
};

struct StoredState {
  FileDtype dtype = FileDtype::F32;
  tensor::Shape shape;
  std::vector<StoredSlice> slices;  // they cover it; some may overlap, and hold the same there
};

struct Manifest {
  std::int64_t step = 0;                       // steps done
  std::int64_t samples = 0;                    // sequences consumed: the position in the data
  std::int64_t seed = 0;                       // all the random state there is
  std::uint32_t checksum = 0;                  // of its own text, once it has been read
  std::optional<std::uint32_t> follows;        // that of the checkpoint saved before it
  std::map<std::string, std::int64_t> layout;  // what it was written under, for people
  std::string config;                          // resolved, as YAML
  std::vector<StoredFile> files;
  std::map<std::string, StoredState, std::less<>> states;
};

// As text with a checksum at its end, and back; `name` is for errors.
std::string manifest_text(const Manifest& manifest);
Manifest parse_manifest(std::string_view text, const std::string& name);

// Of the folder of a step. ConfigError, with the way back to the checkpoint before it, where it is
// damaged.
Manifest read_manifest(const std::filesystem::path& folder);

// Its checksum alone, which no other content has; none where the folder has no such file.
std::optional<std::uint32_t> manifest_checksum(const std::filesystem::path& folder);

bool names_file(const Manifest& manifest, std::string_view name);

// What is wrong with the files of a step's folder, as far as their sizes tell.
std::vector<std::string> wrong_files(const std::filesystem::path& folder, const Manifest& manifest);

// Adds the files and slices of another rank.
void add_part(Manifest& manifest, Manifest part);

// The first state that its slices are too few for; empty: there is none.
std::string uncovered_state(const Manifest& manifest);

// "world 4, tp 2, ...": the sizes above 1 of what it was written under.
std::string layout_text(const Manifest& manifest);

std::uint64_t bytes_of(const StoredSlice& slice, FileDtype dtype);

}  // namespace weft::checkpoint
