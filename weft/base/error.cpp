#include "weft/base/error.h"

#include <cerrno>
#include <cstring>
#include <utility>

namespace weft::base {
namespace {

std::string join_lines(const std::vector<std::string>& complaints) {
  std::string all;
  for (const std::string& complaint : complaints) {
    if (!all.empty()) all += '\n';
    all += complaint;
  }
  return all;
}

}  // namespace

ConfigError::ConfigError(std::string complaint)
    : ConfigError(std::vector<std::string>{std::move(complaint)}) {}

ConfigError::ConfigError(std::vector<std::string> complaints)
    : std::runtime_error(join_lines(complaints)), complaints_(std::move(complaints)) {}

void throw_errno(const std::string& what) {
  const int code = errno;
  throw SystemError(what + ": " + std::strerror(code));
}

}  // namespace weft::base
