#include "tests/meta/repository_support.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "tests/meta/shell_support.h"
#include "tests/soak.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"

namespace weft::meta {
namespace {

namespace fs = std::filesystem;

const fs::path& root() {
  static const fs::path path = WEFT_SOURCE_DIR;
  return path;
}

bool is_left_out(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with('.') || path == root() / "build" || path == root() / "runs";
}

}  // namespace

std::vector<TextFile> files_below(std::string_view folder,
                                  const std::vector<std::string>& endings) {
  std::vector<TextFile> files;
  for (fs::recursive_directory_iterator at(root() / folder), end; at != end; ++at) {
    if (is_left_out(at->path())) {
      at.disable_recursion_pending();
      continue;
    }
    const std::string name = at->path().filename().string();
    const bool wanted = std::ranges::any_of(endings, [&](const std::string& ending) {
      return name.ends_with(ending);
    });
    if (!wanted || !at->is_regular_file()) continue;
    files.push_back({.path = fs::relative(at->path(), root()).generic_string(),
                     .text = base::read_text(at->path())});
  }
  std::ranges::sort(files, {}, &TextFile::path);
  return files;
}

std::optional<std::set<std::string>> changed_files() {
  if (soaks()) return std::nullopt;
  const Ran ran = shell(
      "cd '" WEFT_SOURCE_DIR
      "' && base=$(git merge-base HEAD '@{upstream}') && "
      "git diff --name-only --relative \"$base\" && git ls-files --others --exclude-standard");
  if (ran.code != 0) return std::nullopt;
  const std::vector<std::string> paths = lines_of(ran.said);
  return std::set(paths.begin(), paths.end());
}

bool exists(std::string_view path) { return fs::exists(root() / path); }

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines = base::split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

std::vector<std::string> words_of(std::string_view line) {
  std::istringstream stream{std::string(line)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

void append(Complaints& all, Complaints more) { all.insert(all.end(), more.begin(), more.end()); }

std::string listed(const Complaints& complaints) {
  return fmt::format("{}", fmt::join(complaints, "\n"));
}

}  // namespace weft::meta
