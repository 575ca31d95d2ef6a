#include "weft/data/text_files.h"

#include <algorithm>

#include "weft/base/check.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;
using base::text;

constexpr std::uint64_t kLargestTotal = std::uint64_t{4} << 30;
// Every file is one mapping; Linux allows a process 65530 of them by default.
constexpr std::size_t kMostFiles = 16384;
constexpr std::size_t kMostEntries = 1u << 20;

bool wanted(const fs::path& path, const std::vector<std::string>& extensions) {
  const std::string name = path.filename().string();
  return extensions.empty() ||
         std::any_of(extensions.begin(), extensions.end(), [&](const std::string& extension) {
           return name.ends_with(extension);
         });
}

[[noreturn]] void throw_unreadable(const fs::path& path, const std::error_code& error) {
  throw base::SystemError(text("cannot list '{}': {}", path.string(), error.message()));
}

}  // namespace

std::vector<fs::path> list_text_files(const fs::path& path,
                                      const std::vector<std::string>& extensions) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::regular) return {path};
  if (status.type() != fs::file_type::directory) {
    throw base::ConfigError(
        text("dataset.path='{}' is neither a file nor a folder; give one that is", path.string()));
  }
  std::vector<fs::path> files;
  std::size_t entries = 0;
  fs::recursive_directory_iterator at(path, error);
  if (error) throw_unreadable(path, error);
  while (at != fs::recursive_directory_iterator()) {
    if (++entries > kMostEntries) {
      throw base::ConfigError(
          text("dataset.path='{}' holds more than {} entries; point it at a smaller folder",
               path.string(),
               kMostEntries));
    }
    if (at->symlink_status(error).type() == fs::file_type::regular &&
        wanted(at->path(), extensions)) {
      files.push_back(at->path());
    }
    at.increment(error);
    if (error) throw_unreadable(path, error);
  }
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
    return a.generic_string() < b.generic_string();
  });
  return files;
}

std::vector<TextDataset::Piece> TextDataset::map_pieces(const config::DatasetConfig& config) {
  const std::vector<fs::path> files = list_text_files(config.path, config.extensions);
  if (files.empty() && !config.extensions.empty()) {
    throw base::ConfigError(
        text("dataset.path='{}' holds {}, none with a name that ends in one of "
             "dataset.extensions=[{}]; give endings that are there, or dataset.extensions=[] to "
             "read every file",
             config.path,
             base::counted(std::ssize(list_text_files(config.path, {})), "file"),
             fmt::join(config.extensions, ",")));
  }
  if (files.size() > kMostFiles) {
    throw base::ConfigError(
        text("dataset.path='{}' holds {} files; at most {} are read: narrow dataset.extensions or "
             "join the files",
             config.path,
             files.size(),
             kMostFiles));
  }
  std::vector<Piece> pieces;
  std::uint64_t total = 0;
  for (const fs::path& file : files) {
    base::Mapping mapping(file);
    total += mapping.bytes().size();
    if (total > kLargestTotal) {
      throw base::ConfigError(
          text("dataset.path='{}' holds more than {} bytes of text; narrow dataset.extensions or "
               "use an indexed dataset",
               config.path,
               kLargestTotal));
    }
    if (!mapping.bytes().empty()) pieces.push_back({total, std::move(mapping)});
  }
  return pieces;
}

TextDataset::TextDataset(const config::DatasetConfig& config,
                         std::int64_t seq_length,
                         std::uint64_t seed)
    : pieces_(map_pieces(config)),
      order_(config.path,
             pieces_.empty() ? 0 : pieces_.back().end,
             seq_length,
             config.eval_fraction,
             seed) {}

void TextDataset::read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const {
  CHECK(tokens.size() == order_.seq_length() + 1, "{} tokens", tokens.size());
  std::uint64_t at = order_.first_token(split, sample);
  auto piece = std::upper_bound(
      pieces_.begin(),
      pieces_.end(),
      at,
      [](std::uint64_t position, const Piece& candidate) { return position < candidate.end; });
  for (std::int32_t& token : tokens) {
    if (at == piece->end) ++piece;
    const auto bytes = piece->bytes.bytes();
    token = static_cast<std::int32_t>(bytes[bytes.size() - (piece->end - at)]);
    ++at;
  }
}

}  // namespace weft::data
