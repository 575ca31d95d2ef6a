// The three errors of Weft.
//
// ConfigError: the user's input is wrong. Holds every complaint found, each with the numbers and
// the fix. SystemError: the world outside failed (a file, MPI, a peer rank). Names the call and
// where. InternalError: our bug; thrown by CHECK. Library code never prints, exits or aborts.
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

// A file to read that is not there: the world's failure, and the input of who named the file.
class MissingInput : public SystemError {
 public:
  using SystemError::SystemError;
};

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// SystemError for a failed system call: "<what>: <strerror(errno)>".
[[noreturn]] void throw_errno(const std::string& what);

}  // namespace weft::base
