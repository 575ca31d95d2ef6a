#include "weft/checkpoint/new_folder.h"

#include <fcntl.h>
#include <stdio.h>

#include <vector>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/text.h"

namespace weft::checkpoint {
namespace {

namespace fs = std::filesystem;
using base::Overwrite;
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

bool is_free(const fs::path& target) {
  std::error_code error;
  return !fs::exists(fs::symlink_status(target, error)) ||
         (fs::is_directory(target, error) && fs::is_empty(target, error));
}

void remove_content(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    fs::remove_all(entry.path(), error);
  }
}

}  // namespace

void require_free_folder(const fs::path& target, Overwrite overwrite, const std::string& what) {
  if (target.empty()) throw base::ConfigError(what + "a folder to write to is needed, not ''");
  const fs::path path = without_slash(target);
  std::error_code error;
  if (is_free(path)) return;
  if (overwrite == Overwrite::Yes && fs::is_directory(path, error)) return;
  throw base::ConfigError(
      text("{}'{}' is there already: name another folder{}",
           what,
           path.string(),
           fs::is_directory(path, error) ? ", or give --overwrite to replace what it holds" : ""));
}

NewFolder::NewFolder(fs::path target, Overwrite overwrite, GivesWay gives_way)
    : target_(without_slash(std::move(target))),
      overwrite_(overwrite),
      gives_way_(std::move(gives_way)) {
  require_free_folder(target_, overwrite);
  std::error_code error;
  // A link stays one: the folder that it leads to is replaced.
  if (const fs::path led = fs::canonical(target_, error); !error) target_ = led;
  partial_ = target_;
  partial_ += ".partial";
  fs::create_directories(partial_, error);
  if (error) throw_unmade(partial_, error);
  lock_.emplace(partial_, O_RDONLY | O_DIRECTORY, 0, partial_.string());
  if (base::try_lock(*lock_) == base::Locked::Elsewhere) {
    finished_ = true;  // not ours to remove
    throw base::SystemError(text("'{}' is being written by another process", partial_.string()));
  }
  remove_content(partial_);
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!finished_) fs::remove_all(partial_, ignored);
}

void NewFolder::finish() {
  base::sync_folder(partial_);
  if (!is_free(target_)) {
    if (overwrite_ == Overwrite::Yes) return replace();
    finished_ = true;
    throw base::SystemError(
        text("'{}' came to be while it was written: what was to be there is in "
             "'{}'",
             target_.string(),
             partial_.string()));
  }
  std::error_code error;
  fs::rename(partial_, target_, error);
  if (error) throw_unmade(target_, error);
  finished_ = true;
  base::sync_folder(folder_of(target_));
}

// After the exchange the old folder has the name of the partial one.
void NewFolder::replace() {
  std::vector<fs::path> kept;
  for (const fs::directory_entry& entry : fs::directory_iterator(target_)) {
    const fs::path name = entry.path().filename();
    const bool stays = gives_way_ && !gives_way_(name.string());
    if (stays && !fs::exists(fs::symlink_status(partial_ / name))) kept.push_back(name);
  }
  if (::renameat2(AT_FDCWD, partial_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) != 0) {
    base::throw_errno(text("cannot replace '{}'", target_.string()));
  }
  finished_ = true;  // the old folder goes when what is kept has left it, and not before
  for (const fs::path& name : kept) fs::rename(partial_ / name, target_ / name);
  std::error_code ignored;
  fs::remove_all(partial_, ignored);
  base::sync_folder(target_);
  base::sync_folder(folder_of(target_));
}

}  // namespace weft::checkpoint
