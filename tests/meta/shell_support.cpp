#include "tests/meta/shell_support.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>

namespace weft::meta {

Ran shell(const std::string& command) {
  Ran ran;
  FILE* pipe = ::popen(("{ " + command + "\n} 2>&1 </dev/null").c_str(), "r");
  if (pipe == nullptr) return ran;
  std::array<char, 4096> part;
  for (std::size_t got; (got = std::fread(part.data(), 1, part.size(), pipe)) > 0;) {
    ran.said.append(part.data(), got);
  }
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) ran.code = WEXITSTATUS(status);
  return ran;
}

}  // namespace weft::meta
