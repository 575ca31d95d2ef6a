#include "tests/cli/program_support.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "weft/base/files/file.h"

namespace weft::cli {
namespace {

// Separate file in the temporary folder, removed with the object.
class TemporaryFile {
 public:
  TemporaryFile() {
    path_ = (std::filesystem::temp_directory_path() / "weft_cli_XXXXXX").string();
    const int descriptor = ::mkstemp(path_.data());
    if (descriptor >= 0) ::close(descriptor);
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Cache of the program for the tests, separate from the user's and removed afterwards.
class CacheFolder {
 public:
  CacheFolder() {
    path_ = (std::filesystem::temp_directory_path() / "weft_cache_XXXXXX").string();
    if (::mkdtemp(path_.data()) != nullptr) ::setenv("XDG_CACHE_HOME", path_.c_str(), 1);
  }
  ~CacheFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

 private:
  std::string path_;
};
const CacheFolder kCacheFolder;

Outcome run_command(const std::string& command) {
  const TemporaryFile errors;
  Outcome outcome;
  if (FILE* pipe = ::popen((command + " 2>'" + errors.path() + "'").c_str(), "r")) {
    std::array<char, 4096> part;
    for (std::size_t got; (got = std::fread(part.data(), 1, part.size(), pipe)) > 0;) {
      outcome.out.append(part.data(), got);
    }
    const int status = ::pclose(pipe);
    if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  }
  outcome.err = base::read_text(errors.path());
  return outcome;
}

}  // namespace

Outcome weft(const std::string& arguments, const std::string& environment) {
  return run_command(environment + " '" WEFT_BINARY "' " + arguments);
}

Outcome shell(const std::string& name, const std::string& script) {
  const TemporaryFile file;
  base::write_whole(file.path(), script);
  return run_command(name + " '" + file.path() + "'");
}

}  // namespace weft::cli
