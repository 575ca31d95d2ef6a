// A folder that is there when it is whole, and not before.
#pragma once

#include <filesystem>
#include <optional>

#include "weft/base/descriptor.h"

namespace weft::checkpoint {

class NewFolder {
 public:
  // Makes <target>.partial, or takes the one that a killed process left. ConfigError where
  // something is at `target` already (an empty folder is nothing), SystemError where another
  // process makes the same folder or nothing can be written there.
  explicit NewFolder(std::filesystem::path target);
  // Removes what is not finished.
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  const std::filesystem::path& path() const { return partial_; }

  // Gives it its name. Its files are synced already.
  void finish();

 private:
  std::filesystem::path target_, partial_;
  std::optional<base::Descriptor> lock_;
  bool finished_ = false;
};

}  // namespace weft::checkpoint
