#include <algorithm>
#include <charconv>

#include "weft/base/crc32c.h"
#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/checkpoint/manifest.h"
#include "weft/checkpoint/manifest_words.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/checkpoint/tensors/json_limits.h"

namespace weft::checkpoint {
namespace {

using base::text;

constexpr std::size_t kMostTailBytes = 64;  // tail of the text with its checksum
constexpr std::size_t kMostShards = 1 << 20;
constexpr std::size_t kMostStates = 1 << 17;  // the largest models have some thousands
constexpr std::int64_t kMostStateElements = std::int64_t{1} << 48;  // per tensor
constexpr std::int64_t kLargestNumber = INT64_MAX;

// Checksum of the text; ConfigError if the one at its end differs.
std::uint32_t checked(std::string_view content, const std::string& file) {
  const auto reject = [&](const std::string& what) {
    throw base::ConfigError(text("'{}' is damaged: {}", file, what));
  };
  const std::size_t at = content.rfind(kChecksumKey);
  if (at == std::string_view::npos) reject("it has no checksum at its end, so it is cut short");
  const std::string_view tail = content.substr(at + kChecksumKey.size());
  std::uint32_t said = 0;
  const auto [end, error] = std::from_chars(tail.begin(), tail.end(), said);
  if (error != std::errc() || std::string_view(end, tail.end()) != "}\n") {
    reject("it does not end with its checksum");
  }
  const std::uint32_t found = base::crc32c(content.substr(0, at));
  if (found != said) reject(text("its bytes have checksum {}, and it says {}", found, said));
  return found;
}

class ManifestParser {
 public:
  explicit ManifestParser(const std::string& file) : file_(file) {}

  Manifest parse(const StrictJson& json) {
    require(json, "format", kManifestFormat);
    manifest_.step = number(json, "step");
    manifest_.samples = number(json, "samples");
    manifest_.seed = number(json, "seed");
    number(json, "block_bytes", kBlockBytes, kBlockBytes);
    if (json.contains("follows")) {
      manifest_.follows = static_cast<std::uint32_t>(number(json, "follows", 0, UINT32_MAX));
    }
    manifest_.config = as_word(member(json, "config", file_), "config", file_);
    for (const auto& [axis, size] : object(member(json, "layout", file_), "layout").items()) {
      manifest_.layout[axis] = as_integer(size, "layout", file_, 0, kLargestNumber);
    }
    for (const StrictJson& entry : array(member(json, "files", file_), "files", kMostShards)) {
      add_file(entry);
    }
    for (const auto& [name, entry] : object(member(json, "tensors", file_), "tensors").items()) {
      what_ = text("tensor '{}'", base::shown(name));
      manifest_.states.emplace(name, state_of(object(entry, what_)));
    }
    return std::move(manifest_);
  }

 private:
  std::int64_t number(const StrictJson& parent,
                      const char* key,
                      std::int64_t low = 0,
                      std::int64_t high = kLargestNumber) const {
    const std::string named = what_.empty() ? key : text("{}: {}", what_, key);
    return as_integer(member(parent, key, file_), named, file_, low, high);
  }

  void require(const StrictJson& parent, const char* key, std::string_view expected) const {
    const StrictJson& value = member(parent, key, file_);
    if (as_word(value, key, file_) != expected) {
      throw_wrong_value(value, key, file_, text("\"{}\"", expected));
    }
  }

  const StrictJson& object(const StrictJson& value, std::string_view key) const {
    if (!value.is_object()) throw_wrong_value(value, key, file_, "an object");
    return value;
  }

  const StrictJson& array(const StrictJson& value, std::string_view key, std::size_t most) const {
    if (!value.is_array() || value.size() > most) {
      throw_wrong_value(value, key, file_, text("a list of at most {}", most));
    }
    return value;
  }

  // Checks that a name, which is joined to the folder, cannot lead out of it.
  static bool is_shard_name(std::string_view name) {
    constexpr std::string_view kFront = "rank_", kBack = ".safetensors";
    if (name.size() > 40 || !name.starts_with(kFront) || !name.ends_with(kBack)) return false;
    name.remove_prefix(kFront.size());
    name.remove_suffix(std::min(name.size(), kBack.size()));
    if (name.ends_with(kSecondShard)) name.remove_suffix(kSecondShard.size());
    return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
  }

  void add_file(const StrictJson& entry) {
    what_ = text("files[{}]", manifest_.files.size());
    object(entry, what_);
    StoredFile stored;
    const StrictJson& name = member(entry, "name", file_);
    stored.name = as_word(name, what_, file_);
    if (!is_shard_name(stored.name)) {
      throw_wrong_value(name,
                        what_,
                        file_,
                        "rank_<number>.safetensors or rank_<number>.2.safetensors");
    }
    stored.bytes = static_cast<std::uint64_t>(number(entry, "bytes"));
    constexpr std::uint64_t kMostHeaderBytes = kLargestJson + sizeof(std::uint64_t);
    stored.header_bytes = static_cast<std::uint64_t>(
        number(entry,
               "header_bytes",
               0,
               static_cast<std::int64_t>(std::min(stored.bytes, kMostHeaderBytes))));
    stored.header_checksum =
        static_cast<std::uint32_t>(number(entry, "header_crc32c", 0, UINT32_MAX));
    manifest_.files.push_back(std::move(stored));
  }

  StoredState state_of(const StrictJson& entry) {
    StoredState state;
    const StrictJson& dtype = member(entry, "dtype", file_);
    const auto known = dtype_of(as_word(dtype, what_, file_));
    if (!known) throw_wrong_value(dtype, what_, file_, "a dtype of safetensors");
    state.dtype = *known;
    state.shape = shape_of(member(entry, "shape", file_));
    for (const StrictJson& slice : array(member(entry, "slices", file_), what_, kMostShards)) {
      state.slices.push_back(slice_of_entry(object(slice, what_), state));
    }
    return state;
  }

  tensor::Shape shape_of(const StrictJson& value) const {
    std::vector<std::int64_t> dims;
    std::int64_t elements = 1;
    for (const StrictJson& dim : array(value, what_, tensor::kMaxRank)) {
      dims.push_back(as_integer(dim, what_, file_, 1, kMostStateElements));
      if (dims.back() > kMostStateElements / elements) {
        throw_wrong_value(value, what_, file_, text("at most {} elements", kMostStateElements));
      }
      elements *= dims.back();
    }
    return tensor::Shape(dims);
  }

  // Parses [begin, count] inside `within`.
  tensor::Range range_of(const StrictJson& value, const tensor::Range& within) const {
    if (array(value, what_, 2).size() != 2) throw_wrong_value(value, what_, file_, "two numbers");
    const std::int64_t begin = as_integer(value[0], what_, file_, within.begin, within.end());
    return {.begin = begin, .count = as_integer(value[1], what_, file_, 0, within.end() - begin)};
  }

  std::vector<std::vector<tensor::Range>> dims_of(const StrictJson& value,
                                                  const tensor::Shape& shape) const {
    std::vector<std::vector<tensor::Range>> dims;
    if (std::ssize(array(value, what_, tensor::kMaxRank)) != shape.rank()) {
      throw_wrong_value(value, what_, file_, text("ranges of {} dims", shape.rank()));
    }
    for (int dim = 0; dim < shape.rank(); ++dim) {
      std::vector<tensor::Range>& ranges = dims.emplace_back();
      std::int64_t end = 0;
      for (const StrictJson& range : array(value[static_cast<std::size_t>(dim)],
                                           what_,
                                           static_cast<std::size_t>(shape[dim]))) {
        ranges.push_back(range_of(range, {.begin = end, .count = shape[dim] - end}));
        end = ranges.back().end();
      }
    }
    return dims;
  }

  StoredSlice slice_of_entry(const StrictJson& entry, const StoredState& state) const {
    StoredSlice stored;
    stored.file =
        static_cast<std::size_t>(number(entry, "file", 0, std::ssize(manifest_.files) - 1));
    stored.slice =
        tensor::slice_of(state.shape, dims_of(member(entry, "dims", file_), state.shape));
    stored.slice.elements = range_of(member(entry, "elements", file_), stored.slice.elements);
    const StoredFile& file = manifest_.files[stored.file];
    const std::uint64_t bytes = bytes_of(stored, state.dtype);
    stored.at = static_cast<std::uint64_t>(number(entry, "at"));
    if (bytes > file.bytes || stored.at > file.bytes - bytes) {
      throw base::ConfigError(text("'{}': {}: {} bytes from byte {} on of '{}', which has {}",
                                   file_,
                                   what_,
                                   bytes,
                                   stored.at,
                                   file.name,
                                   file.bytes));
    }
    const StrictJson& checksums = member(entry, "crc32c", file_);
    const std::uint64_t blocks = (bytes + kBlockBytes - 1) / kBlockBytes;
    if (!checksums.is_array() || checksums.size() != blocks) {
      throw_wrong_value(checksums, what_, file_, text("{} checksums", blocks));
    }
    for (const StrictJson& sum : checksums) {
      stored.checksums.push_back(
          static_cast<std::uint32_t>(as_integer(sum, what_, file_, 0, UINT32_MAX)));
    }
    return stored;
  }

  const std::string& file_;
  std::string what_;  // field being parsed, for errors
  Manifest manifest_;
};

}  // namespace

Manifest parse_manifest(std::string_view content, const std::string& name) {
  const std::uint32_t checksum = checked(content, name);
  Manifest manifest = ManifestParser(name).parse(
      parse_within({.bytes = kMostManifestBytes, .members = kMostStates}, content, name));
  manifest.checksum = checksum;
  return manifest;
}

Manifest read_manifest(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kManifestName;
  const std::string content = base::read_text(path, kMostManifestBytes);
  try {
    return parse_manifest(content, path.string());
  } catch (const base::ConfigError& error) {
    throw base::ConfigError(text("{}; {}", error.what(), way_back(folder)));
  }
}

std::optional<std::uint32_t> manifest_checksum(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kManifestName;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  const base::InputFile file(path);
  std::string tail(std::min<std::uint64_t>(file.size(), kMostTailBytes), '\0');
  file.read(file.size() - tail.size(), std::as_writable_bytes(std::span(tail)));
  const std::size_t at = tail.rfind(kChecksumKey);
  if (at == std::string::npos) return std::nullopt;
  std::uint32_t checksum = 0;
  const char* digits = tail.data() + at + kChecksumKey.size();
  const auto [end, failure] = std::from_chars(digits, tail.data() + tail.size(), checksum);
  return failure == std::errc() ? std::optional(checksum) : std::nullopt;
}

bool names_file(const Manifest& manifest, std::string_view name) {
  return std::ranges::find(manifest.files, name, &StoredFile::name) != manifest.files.end();
}

std::vector<std::string> wrong_files(const std::filesystem::path& folder,
                                     const Manifest& manifest) {
  std::vector<std::string> wrong;
  for (const StoredFile& file : manifest.files) {
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(folder / file.name, error);
    if (error) {
      wrong.push_back(text("{}: {}", file.name, error.message()));
    } else if (bytes != file.bytes) {
      wrong.push_back(text("{} has {} bytes, {} expected", file.name, bytes, file.bytes));
    }
  }
  return wrong;
}

}  // namespace weft::checkpoint
