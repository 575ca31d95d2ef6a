#include "weft/data/indexed_files.h"

namespace weft::data {
namespace {

std::vector<std::byte> read_all(const std::filesystem::path& path) {
  const base::InputFile file(path);
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes);
  return bytes;
}

}  // namespace

IndexedFiles::IndexedFiles(const std::string& prefix)
    : idx_(read_all(prefix + ".idx")),
      bin_(prefix + ".bin"),
      index_(parse_index(idx_, bin_.size(), prefix + ".idx")) {}

void IndexedFiles::read(std::uint64_t first, std::span<std::int64_t> ids) const {
  const std::uint64_t width = token_bytes(index_.type());
  std::vector<std::byte> bytes(ids.size() * width);
  bin_.read(first * width, bytes);
  widen(integer_type(index_.type()), bytes, ids);
}

}  // namespace weft::data
