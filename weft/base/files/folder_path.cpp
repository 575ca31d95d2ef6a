#include "weft/base/files/folder_path.h"

#include "weft/base/text.h"

namespace weft::base {
namespace {

namespace fs = std::filesystem;

// Kind of a non-folder at a path; empty: a folder, or no entry.
std::string other_than_folder(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status led = fs::status(path, ignored);
  if (fs::is_directory(led)) return "";
  if (fs::is_symlink(fs::symlink_status(path, ignored)) && !fs::exists(led)) {
    return "a link to nothing";
  }
  if (fs::is_regular_file(led)) return "a file";
  return fs::exists(led) ? "no folder" : "";
}

}  // namespace

std::string folder_obstacle(const fs::path& path) {
  const bool has_slash = !path.has_filename() && path.has_relative_path();
  const fs::path whole = has_slash ? path.parent_path() : path;
  for (fs::path part = whole; !part.empty(); part = part.parent_path()) {
    const std::string other = other_than_folder(part);
    if (!other.empty()) {
      return part == whole
                 ? text("'{}' is {}, not a folder: name another folder", path.string(), other)
                 : text("'{}' is below '{}', which is {}: name another folder",
                        path.string(),
                        part.string(),
                        other);
    }
    if (part == part.parent_path()) break;
  }
  return "";
}

}  // namespace weft::base
