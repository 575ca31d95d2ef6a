// Byte-level text: a token is a byte of a file, or of the files of a folder one after the other
// with nothing between them, in order of their path below the folder. Where no endings are named,
// files of a folder that are not UTF-8 are left out.
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

// Up to `most_held` bytes are read when it is opened, so that what happens to the files later does
// not matter. Of more text each sample is read when it is asked for, and a file that is
// shorter by then is an error that names it.
class TextDataset : public Dataset {
 public:
  static constexpr std::uint64_t kMostHeld = std::uint64_t{256} << 20;

  TextDataset(const config::DatasetConfig& config,
              std::int64_t seq_length,
              std::uint64_t seed,
              std::uint64_t most_held = kMostHeld);

  std::uint64_t samples(Split split) const override { return order_.samples(split); }
  std::optional<std::uint64_t> tokens() const override { return order_.tokens(); }
  // Of a folder: its files by their endings, and how many were left out for not being UTF-8.
  std::string remark() const override { return remark_; }
  void read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const override;

 private:
  struct Piece {
    std::uint64_t begin, end;  // in the concatenation
    std::filesystem::path file;
  };
  std::vector<Piece> list_pieces(const config::DatasetConfig& config);
  // Fills `out` from position `at` of the concatenation on.
  void read_files(std::uint64_t at, std::span<std::byte> out) const;

  std::string remark_;
  std::vector<Piece> pieces_;
  SampleOrder order_;
  std::vector<std::byte> held_;  // all of it, or nothing
};

}  // namespace weft::data
