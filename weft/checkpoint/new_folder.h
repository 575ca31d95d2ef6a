// A folder that is there when it is whole, and not before.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "weft/base/descriptor.h"
#include "weft/base/overwrite.h"

namespace weft::checkpoint {

// True if nothing is at `target`, or an empty folder.
bool is_free_folder(const std::filesystem::path& target);

// ConfigError where something is at `target` already (an empty folder is nothing), unless it is a
// folder and may be replaced. `what` begins the message: "checkpoint.save_hf: ".
void require_free_folder(const std::filesystem::path& target,
                         base::Overwrite overwrite,
                         const std::string& what = "");

class NewFolder {
 public:
  // Whether a file or folder of the old one gives way to the new one; the rest is kept.
  using GivesWay = std::function<bool(const std::string& name)>;

  // Makes <target>.partial, or takes the one that a killed process left. ConfigError as
  // require_free_folder() and where <target>.partial is something else, SystemError where another
  // process makes the same folder or nothing can be written there.
  explicit NewFolder(std::filesystem::path target,
                     base::Overwrite overwrite = base::Overwrite::No,
                     GivesWay gives_way = {});
  // Removes what is not finished.
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  const std::filesystem::path& path() const { return partial_; }

  // Gives it its name. Its files are synced already. Where a folder is replaced, what does not give
  // way moves over, and both names change at once. SystemError, and <target>.partial stays, where
  // something came to `target` meanwhile.
  void finish();

 private:
  void replace();

  std::filesystem::path target_, partial_;
  base::Overwrite overwrite_;
  GivesWay gives_way_;
  std::optional<base::Descriptor> lock_;
  bool finished_ = false;
};

}  // namespace weft::checkpoint
