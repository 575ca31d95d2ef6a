// Runs a command line and captures its output.
#pragma once

#include <string>

namespace weft::meta {

struct Ran {
  int code = -1;     // exit code; -1: ended by a signal
  std::string said;  // standard output and standard error
};

Ran shell(const std::string& command);

}  // namespace weft::meta
