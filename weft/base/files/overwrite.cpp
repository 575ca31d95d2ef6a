#include "weft/base/files/overwrite.h"

#include <fstream>
#include <string>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/files/folder_path.h"
#include "weft/base/text.h"

namespace weft::base {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMarkedBytes = 4096;

bool has_content(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && fs::file_size(path, error) > 0 && !error;
}

// These names lead to any file that the shell opened for this process.
bool is_stream_name(const fs::path& path) {
  const std::string name = path.string();
  return name == "/dev/stdout" || name == "/dev/stderr" || name.starts_with("/dev/fd/") ||
         name.starts_with("/proc/self/fd/");
}

bool is_marked(const fs::path& path, std::string_view mark) {
  if (mark.empty()) return false;
  std::string head(kMarkedBytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return head.find(mark) != std::string::npos;
}

// Refuses names that no file can have.
void require_name(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    throw ConfigError(text("'{}' is a folder: name a file", path.string()));
  }
  const std::string obstacle = folder_obstacle(path.parent_path());
  if (!obstacle.empty()) {
    throw ConfigError(text("'{}' cannot be written: {}", path.string(), obstacle));
  }
}

}  // namespace

void require_free(const fs::path& path, Overwrite overwrite, std::string_view mark) {
  if (is_stream_name(path)) return;
  require_name(path);
  if (overwrite == Overwrite::Yes || !has_content(path)) return;
  if (is_marked(path, mark)) return;
  throw ConfigError(
      text("'{}' is there already{}: name another file, or give --overwrite to replace it",
           path.string(),
           mark.empty() ? "" : ", and this command did not write it"));
}

void require_result(const fs::path& path, Overwrite overwrite, std::string_view mark) {
  require_free(path, overwrite, mark);
  require_writable(path);
}

}  // namespace weft::base
