#include "weft/data/indexed_files.h"

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::data {
namespace {

// Text file in place of the prefix: the error names the two ways to train on it.
const std::string& require_prefix(const std::string& prefix) {
  std::error_code ignored;
  const bool has_index = std::filesystem::exists(prefix + ".idx", ignored);
  if (has_index || !std::filesystem::exists(prefix, ignored)) return prefix;
  throw base::ConfigError(base::text(
      "'{0}' is a file or folder, and indexed data are two files, PATH.bin and PATH.idx: "
      "train on its bytes with dataset.kind=text dataset.path={0}, or make token ids of "
      "it with `weft data import`",
      base::shown(prefix)));
}

std::vector<std::byte> read_all(const std::filesystem::path& path) {
  const base::InputFile file(path);
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes);
  return bytes;
}

}  // namespace

IndexedFiles::IndexedFiles(const std::string& prefix)
    : idx_(read_all(require_prefix(prefix) + ".idx")),
      bin_(prefix + ".bin"),
      index_(parse_index(idx_, bin_.size(), prefix + ".idx")) {}

void IndexedFiles::read(std::uint64_t first, std::span<std::int64_t> ids) const {
  const std::uint64_t width = token_bytes(index_.type());
  std::vector<std::byte> bytes(ids.size() * width);
  bin_.read(first * width, bytes);
  widen(integer_type(index_.type()), bytes, ids);
}

}  // namespace weft::data
