#include "weft/checkpoint/new_folder.h"

#include <fcntl.h>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/text.h"

namespace weft::checkpoint {
namespace {

namespace fs = std::filesystem;
using base::text;

// Without the slash that people's shells put behind a folder.
fs::path without_slash(fs::path path) {
  return path.has_filename() || path == path.root_path() ? path : path.parent_path();
}

[[noreturn]] void throw_unmade(const fs::path& path, const std::error_code& error) {
  throw base::SystemError(text("cannot make '{}': {}", path.string(), error.message()));
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace

NewFolder::NewFolder(fs::path target) : target_(without_slash(std::move(target))) {
  if (target_.empty()) throw base::ConfigError("a folder to write to is needed, not ''");
  std::error_code error;
  const bool is_free = !fs::exists(fs::symlink_status(target_, error)) ||
                       (fs::is_directory(target_, error) && fs::is_empty(target_, error));
  if (!is_free) {
    throw base::ConfigError(
        text("'{}' is there already: name another folder, or remove it", target_.string()));
  }
  partial_ = target_;
  partial_ += ".partial";
  fs::create_directories(partial_, error);
  if (error) throw_unmade(partial_, error);
  lock_.emplace(partial_, O_RDONLY | O_DIRECTORY, 0, partial_.string());
  if (base::try_lock(*lock_) == base::Locked::Elsewhere) {
    finished_ = true;  // not ours to remove
    throw base::SystemError(text("'{}' is being written by another process", partial_.string()));
  }
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!finished_) fs::remove_all(partial_, ignored);
}

void NewFolder::finish() {
  base::sync_folder(partial_);
  std::error_code error;
  fs::rename(partial_, target_, error);
  if (error) throw_unmade(target_, error);
  finished_ = true;
  base::sync_folder(folder_of(target_));
}

}  // namespace weft::checkpoint
