// Folder that appears only when complete.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "weft/base/files/descriptor.h"
#include "weft/base/files/overwrite.h"

namespace weft::checkpoint {

// True if `target` does not exist or is an empty folder.
bool is_free_folder(const std::filesystem::path& target);

// ConfigError if `target` exists and is not an empty folder, unless it is a folder that may be
// replaced. `what`: prefix of the message, such as "checkpoint.save_hf: ".
void require_free_folder(const std::filesystem::path& target,
                         base::Overwrite overwrite,
                         const std::string& what = "");

class NewFolder {
 public:
  // True for names of the old folder that the new folder overwrites; other files are kept.
  using GivesWay = std::function<bool(const std::string& name)>;

  // Makes <target>.partial, or reuses the one of a killed process. ConfigError as
  // require_free_folder(), and if <target>.partial is something else. SystemError if another
  // process makes the same folder, or the folder cannot be written.
  explicit NewFolder(std::filesystem::path target,
                     base::Overwrite overwrite = base::Overwrite::No,
                     GivesWay gives_way = {});
  // Removes an unfinished folder.
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  const std::filesystem::path& path() const { return partial_; }

  // Renames it to `target`; its files must be synced. It gets mode and owner of the folder it
  // replaces, empty or not. When replacing a folder, files to keep move over and the names are
  // exchanged atomically. SystemError, leaving <target>.partial, if something appeared at `target`.
  void finish();

 private:
  void replace();
  void take_rights();

  std::filesystem::path target_, partial_;
  base::Overwrite overwrite_;
  GivesWay gives_way_;
  std::optional<base::Descriptor> lock_;
  struct Rights {
    mode_t mode;
    uid_t owner;
    gid_t group;
  };
  std::optional<Rights> rights_;  // rights of the replaced folder
  bool finished_ = false;
};

}  // namespace weft::checkpoint
