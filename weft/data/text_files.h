// Byte-level text: a token is a byte of a file, or of the files of a folder one after the other
// with nothing between them, in order of their path below the folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weft/base/file.h"
#include "weft/data/sample_order.h"

namespace weft::data {

// The regular files below `path` (or `path` itself) whose names end in one of `extensions` (any,
// where there are none), in order. Symbolic links below `path` are not followed.
std::vector<std::filesystem::path> list_text_files(const std::filesystem::path& path,
                                                   const std::vector<std::string>& extensions);

// Files are mapped; they must not shrink while the dataset lives.
class TextDataset : public Dataset {
 public:
  TextDataset(const config::DatasetConfig& config, std::int64_t seq_length, std::uint64_t seed);

  std::uint64_t samples(Split split) const override { return order_.samples(split); }
  void read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const override;

 private:
  struct Piece {
    std::uint64_t end;  // in the concatenation
    base::Mapping bytes;
  };
  static std::vector<Piece> map_pieces(const config::DatasetConfig& config);

  std::vector<Piece> pieces_;
  SampleOrder order_;
};

}  // namespace weft::data
