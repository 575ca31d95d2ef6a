// Temporary folder, removed with its owner.
#pragma once

#include <filesystem>

namespace weft::cli {

class TemporaryFolder {
 public:
  TemporaryFolder();  // in the system's temporary folder
  explicit TemporaryFolder(const std::filesystem::path& in);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace weft::cli
