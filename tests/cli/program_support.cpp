#include "tests/cli/program_support.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "weft/base/file.h"

namespace weft::cli {

Outcome weft(const std::string& arguments, const std::string& environment) {
  std::string errors = (std::filesystem::temp_directory_path() / "weft_stderr_XXXXXX").string();
  const int descriptor = ::mkstemp(errors.data());
  if (descriptor >= 0) ::close(descriptor);
  const std::string command =
      environment + " '" WEFT_BINARY "' " + arguments + " 2>'" + errors + "'";
  Outcome outcome;
  if (FILE* pipe = ::popen(command.c_str(), "r")) {
    std::array<char, 4096> part;
    for (std::size_t got; (got = std::fread(part.data(), 1, part.size(), pipe)) > 0;) {
      outcome.out.append(part.data(), got);
    }
    const int status = ::pclose(pipe);
    if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  }
  outcome.err = base::read_text(errors);
  std::filesystem::remove(errors);
  return outcome;
}

}  // namespace weft::cli
