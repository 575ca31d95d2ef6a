// Both files of an indexed dataset, opened and checked against each other.
#pragma once

#include <string>
#include <vector>

#include "weft/base/files/file.h"
#include "weft/data/indexed_index.h"

namespace weft::data {

class IndexedFiles {
 public:
  // Reads `prefix` + ".idx" and opens `prefix` + ".bin". Throws MissingInput if one is missing,
  // ConfigError if they do not match.
  explicit IndexedFiles(const std::string& prefix);
  IndexedFiles(const IndexedFiles&) = delete;
  IndexedFiles& operator=(const IndexedFiles&) = delete;

  const IndexedIndex& index() const { return index_; }
  const base::InputFile& bin() const { return bin_; }
  std::uint64_t idx_bytes() const { return idx_.size(); }

  // Fills `ids` from token `first` on.
  void read(std::uint64_t first, std::span<std::int64_t> ids) const;

 private:
  std::vector<std::byte> idx_;
  base::InputFile bin_;
  IndexedIndex index_;
};

}  // namespace weft::data
