// Weft's three kinds of error.
//
// ConfigError: the user's input is wrong; contains every complaint, each with numbers and fix.
// SystemError: something outside failed, such as a file, MPI or a peer rank; names the call and the
// place. InternalError: our bug, thrown by CHECK. Library code never prints, exits or aborts.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace weft::base {

class ConfigError : public std::runtime_error {
 public:
  explicit ConfigError(std::string complaint);
  explicit ConfigError(std::vector<std::string> complaints);

  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  std::vector<std::string> complaints_;
};

class SystemError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Missing input file. The file system failed, or the user named a wrong file.
class MissingInput : public SystemError {
 public:
  using SystemError::SystemError;
};

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Throws SystemError for a failed system call: "<what>: <strerror(errno)>".
[[noreturn]] void throw_errno(const std::string& what);

}  // namespace weft::base
