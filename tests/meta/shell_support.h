// Runs a command line and keeps what it said.
#pragma once

#include <string>

namespace weft::meta {

struct Ran {
  int code = -1;     // exit code; -1: it did not exit by itself
  std::string said;  // standard output and standard error
};

Ran shell(const std::string& command);

}  // namespace weft::meta
