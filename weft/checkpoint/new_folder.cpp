#include "weft/checkpoint/new_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/files/folder_path.h"
#include "weft/base/text.h"

namespace weft::checkpoint {
namespace {

namespace fs = std::filesystem;
using base::Overwrite;
using base::text;

// Marker inside an unfinished folder, so that a foreign folder of that name is not taken for one.
constexpr const char* kUnfinished = ".unfinished";
constexpr mode_t kRights = 07777;

// Path without a trailing slash.
fs::path without_slash(fs::path path) {
  return path.has_filename() || path == path.root_path() ? path : path.parent_path();
}

[[noreturn]] void throw_unmade(const fs::path& path, const std::error_code& error) {
  throw base::SystemError(text("cannot make '{}': {}", path.string(), error.message()));
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// The root of a file system cannot be exchanged with another folder.
bool is_mount_point(const fs::path& folder) {
  struct stat own, parent;
  return ::stat(folder.c_str(), &own) == 0 && ::stat((folder / "..").c_str(), &parent) == 0 &&
         own.st_dev != parent.st_dev;
}

void remove_content(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    fs::remove_all(entry.path(), error);
  }
}

}  // namespace

bool is_free_folder(const fs::path& target) {
  std::error_code error;
  return !fs::exists(fs::symlink_status(target, error)) ||
         (fs::is_directory(target, error) && fs::is_empty(target, error));
}

void require_free_folder(const fs::path& target, Overwrite overwrite, const std::string& what) {
  if (target.empty()) throw base::ConfigError(what + "a folder to write to is needed, not ''");
  const fs::path path = without_slash(target);
  const std::string obstacle = base::folder_obstacle(path.parent_path());
  if (!obstacle.empty()) {
    throw base::ConfigError(text("{}'{}' cannot be made: {}", what, path.string(), obstacle));
  }
  std::error_code error;
  const fs::path here = fs::current_path(error), there = fs::weakly_canonical(path, error);
  if (std::ranges::mismatch(there, here).in1 == there.end()) {
    throw base::ConfigError(text("{}'{}' is the current folder, or holds it: name a folder in it",
                                 what,
                                 path.string()));
  }
  if (is_mount_point(path)) {
    throw base::ConfigError(
        text("{}'{}' is a mount point, which no folder can replace: name a folder in it",
             what,
             path.string()));
  }
  if (is_free_folder(path)) return;
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
  // A link is kept: the folder behind it is replaced.
  if (const fs::path led = fs::canonical(target_, error); !error) target_ = led;
  partial_ = target_;
  partial_ += ".partial";
  const bool is_left = fs::is_directory(partial_, error) && !is_free_folder(partial_);
  if (is_left && !fs::exists(partial_ / kUnfinished, error)) {
    throw base::ConfigError(
        text("'{}' is there, and no run that ended early left it: move it away, "
             "or name another folder than '{}'",
             partial_.string(),
             target_.string()));
  }
  fs::create_directories(partial_, error);
  if (error) throw_unmade(partial_, error);
  lock_.emplace(partial_, O_RDONLY | O_DIRECTORY, 0, partial_.string());
  if (base::try_lock(*lock_) == base::Locked::Elsewhere) {
    finished_ = true;  // not ours to remove
    throw base::SystemError(text("'{}' is being written by another process", partial_.string()));
  }
  remove_content(partial_);
  struct stat before {};
  if (::stat(target_.c_str(), &before) == 0) {
    rights_ = {.mode = before.st_mode & kRights, .owner = before.st_uid, .group = before.st_gid};
    // New content is not readable by more users than the old.
    (void)!::fchmod(lock_->get(), rights_->mode | S_IRWXU);
  }
  base::write_whole(partial_ / kUnfinished, "");
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!finished_) fs::remove_all(partial_, ignored);
}

// Copies owner and mode of the replaced folder. The owner stays if this process may not change it.
void NewFolder::take_rights() {
  if (!rights_) return;
  (void)!::fchown(lock_->get(), rights_->owner, rights_->group);
  (void)!::fchmod(lock_->get(), rights_->mode);
}

// From here on the folder is complete and stays, even after an error.
void NewFolder::finish() {
  std::error_code error;
  fs::remove(partial_ / kUnfinished, error);
  finished_ = true;
  base::sync_folder(partial_);
  const std::string stays = text("what was to be there is in '{}'", partial_.string());
  if (!is_free_folder(target_)) {
    if (overwrite_ == Overwrite::Yes) return replace();
    throw base::SystemError(
        text("'{}' came to be while it was written: {}", target_.string(), stays));
  }
  take_rights();
  fs::rename(partial_, target_, error);
  if (error) {
    throw base::SystemError(
        text("cannot make '{}': {}: {}", target_.string(), error.message(), stays));
  }
  base::sync_folder(folder_of(target_));
}

// After the exchange the old folder has the partial name.
void NewFolder::replace() {
  std::vector<fs::path> kept;
  for (const fs::directory_entry& entry : fs::directory_iterator(target_)) {
    const fs::path name = entry.path().filename();
    const bool stays = gives_way_ && !gives_way_(name.string());
    if (stays && !fs::exists(fs::symlink_status(partial_ / name))) kept.push_back(name);
  }
  if (::renameat2(AT_FDCWD, partial_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) != 0) {
    base::throw_errno(text("cannot replace '{}' (what was to be there is in '{}')",
                           target_.string(),
                           partial_.string()));
  }
  // Removes the old folder only after the kept files have left it.
  for (const fs::path& name : kept) fs::rename(partial_ / name, target_ / name);
  std::error_code ignored;
  fs::remove_all(partial_, ignored);
  base::sync_folder(target_);
  take_rights();
  base::sync_folder(folder_of(target_));
}

}  // namespace weft::checkpoint
