// A folder for files that nobody keeps, gone with its owner.
#pragma once

#include <filesystem>

namespace weft::cli {

class TemporaryFolder {
 public:
  TemporaryFolder();  // where the system has such
  explicit TemporaryFolder(const std::filesystem::path& in);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace weft::cli
