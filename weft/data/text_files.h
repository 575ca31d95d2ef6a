// Byte-level text: a token is a byte of a file, or of a folder's files, concatenated in path order.
// Without extensions, files that are not UTF-8 are left out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "weft/base/files/file.h"
#include "weft/data/sample_order.h"

namespace weft::data {

// Regular files below `path` (or `path` itself) that end in one of `extensions` (empty: any), in
// order. Symbolic links below `path` are not followed.
std::vector<std::filesystem::path> list_text_files(const std::filesystem::path& path,
                                                   const std::vector<std::string>& extensions);

// Up to `most_held` bytes are read at opening, so that later changes to the files do not matter.
// Larger text is read per sample, and a file that became shorter is an error naming it.
class TextDataset : public Dataset {
 public:
  static constexpr std::uint64_t kMostHeld = std::uint64_t{256} << 20;

  TextDataset(const config::DatasetConfig& config,
              std::int64_t seq_length,
              std::uint64_t seed,
              std::uint64_t most_held = kMostHeld);

  std::uint64_t samples(Split split) const override { return order_.samples(split); }
  std::optional<std::uint64_t> tokens() const override { return order_.tokens(); }
  // For a folder: its files by extension, and the number left out for not being UTF-8.
  std::string remark() const override { return remark_; }
  void read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const override;

 private:
  struct Piece {
    std::uint64_t begin, end;  // in the concatenation
    std::filesystem::path file;
  };
  std::vector<Piece> list_pieces(const config::DatasetConfig& config);
  // Reads the concatenation from position `at` on.
  void read_files(std::uint64_t at, std::span<std::byte> out) const;

  std::string remark_;
  std::vector<Piece> pieces_;
  SampleOrder order_;
  std::vector<std::byte> held_;  // all text, or empty
};

}  // namespace weft::data
