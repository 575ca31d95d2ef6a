// Runs the built program as a user would.
#pragma once

#include <string>

namespace weft::cli {

struct Outcome {
  int code = -1;  // exit code; -1: ended by a signal
  std::string out;
  std::string err;
};

// `weft <arguments>` through the shell; `environment` is a prefix such as "A=b".
Outcome weft(const std::string& arguments, const std::string& environment = "");

// Runs a script in the named shell.
Outcome shell(const std::string& name, const std::string& script);

}  // namespace weft::cli
