#include "weft/data/text_files.h"

#include <algorithm>
#include <map>

#include "weft/base/check.h"
#include "weft/base/plain_text.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;
using base::text;

constexpr std::uint64_t kLargestTotal = std::uint64_t{4} << 30;
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

// "812 files (400 .cpp, 300 .h, 100 .md and 12 more)", most frequent extensions first.
std::string files_text(const std::vector<fs::path>& files) {
  constexpr std::size_t kShown = 3;
  std::map<std::string, std::int64_t> counts;
  for (const fs::path& file : files) ++counts[file.extension().string()];
  std::vector<std::pair<std::string, std::int64_t>> endings(counts.begin(), counts.end());
  std::ranges::stable_sort(endings, std::ranges::greater(), &decltype(endings)::value_type::second);
  std::string shown;
  std::int64_t rest = std::ssize(files);
  for (std::size_t i = 0; i < std::min(endings.size(), kShown); ++i) {
    const auto& [ending, count] = endings[i];
    shown += text("{}{} {}",
                  i == 0 ? "" : ", ",
                  count,
                  ending.empty() ? "without an ending" : base::shown(ending));
    rest -= count;
  }
  if (rest > 0) shown += text(" and {} more", rest);
  return text("{} ({})", base::counted(std::ssize(files), "file"), shown);
}

// Removes the files that are not UTF-8; returns their number.
std::int64_t leave_out_binaries(std::vector<fs::path>& files) {
  return static_cast<std::int64_t>(
      std::erase_if(files, [](const fs::path& file) { return !base::begins_as_plain_text(file); }));
}

}  // namespace

std::vector<fs::path> list_text_files(const fs::path& path,
                                      const std::vector<std::string>& extensions) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::regular) return {path};
  if (status.type() == fs::file_type::not_found) {
    throw base::ConfigError(
        text("dataset.path='{}' does not exist: give the path of a file or folder of text, as it "
             "is seen from the current folder or from that beside the recipes",
             path.string()));
  }
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

std::vector<TextDataset::Piece> TextDataset::list_pieces(const config::DatasetConfig& config) {
  std::vector<fs::path> files = list_text_files(config.path, config.extensions);
  if (files.empty() && !config.extensions.empty()) {
    throw base::ConfigError(
        text("dataset.path='{}' holds {}, none with a name that ends in one of "
             "dataset.extensions=[{}]; give endings that are there, or dataset.extensions=[] to "
             "read every file",
             config.path,
             base::counted(std::ssize(list_text_files(config.path, {})), "file"),
             fmt::join(config.extensions, ",")));
  }
  if (std::error_code ignored; fs::is_directory(config.path, ignored)) {
    const std::int64_t binaries = config.extensions.empty() ? leave_out_binaries(files) : 0;
    remark_ = files_text(files);
    if (binaries > 0) remark_ += text(", {} left out that are not UTF-8", binaries);
    if (binaries > 0 && files.empty()) {
      throw base::ConfigError(
          text("dataset.path='{}' holds {}, none of them UTF-8 text: name what is to be read with "
               "dataset.extensions=[...]",
               config.path,
               base::counted(binaries, "file")));
    }
  }
  std::vector<Piece> pieces;
  std::uint64_t total = 0;
  for (const fs::path& file : files) {
    const std::uint64_t size = base::InputFile(file).size();
    total += size;
    if (total > kLargestTotal) {
      throw base::ConfigError(
          text("dataset.path='{}' holds more than {} bytes of text; narrow dataset.extensions or "
               "use an indexed dataset",
               config.path,
               kLargestTotal));
    }
    if (size > 0) pieces.push_back({total - size, total, file});
  }
  return pieces;
}

TextDataset::TextDataset(const config::DatasetConfig& config,
                         std::int64_t seq_length,
                         std::uint64_t seed,
                         std::uint64_t most_held)
    : pieces_(list_pieces(config)),
      order_(config.path,
             pieces_.empty() ? 0 : pieces_.back().end,
             seq_length,
             config.eval_fraction,
             seed) {
  if (order_.tokens() > most_held) return;
  std::vector<std::byte> all(order_.tokens());
  read_files(0, all);
  held_ = std::move(all);
}

void TextDataset::read_files(std::uint64_t at, std::span<std::byte> out) const {
  auto piece = std::upper_bound(
      pieces_.begin(),
      pieces_.end(),
      at,
      [](std::uint64_t position, const Piece& candidate) { return position < candidate.end; });
  for (; !out.empty(); ++piece) {
    const base::InputFile file(piece->file);
    if (const std::uint64_t then = piece->end - piece->begin; file.size() < then) {
      throw base::SystemError(
          text("'{}' has {} bytes, and had {} when the run started: data must not shrink while a "
               "run reads it",
               file.name(),
               file.size(),
               then));
    }
    const std::size_t count = std::min<std::uint64_t>(out.size(), piece->end - at);
    file.read(at - piece->begin, out.first(count));
    out = out.subspan(count);
    at += count;
  }
}

void TextDataset::read(Split split, std::uint64_t sample, std::span<std::int32_t> tokens) const {
  CHECK(tokens.size() == order_.seq_length() + 1, "{} tokens", tokens.size());
  const std::uint64_t at = order_.first_token(split, sample);
  std::vector<std::byte> bytes;
  std::span<const std::byte> found;
  if (held_.empty()) {
    bytes.resize(tokens.size());
    read_files(at, bytes);
    found = bytes;
  } else {
    found = std::span(held_).subspan(at, tokens.size());
  }
  std::ranges::transform(found, tokens.begin(), [](std::byte byte) {
    return static_cast<std::int32_t>(byte);
  });
}

}  // namespace weft::data
