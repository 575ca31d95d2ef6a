// What was found about a config and is said to the user: by a rule, or while words were read.
#pragma once

#include <string>

#include "weft/base/json.h"

namespace weft::config {

struct Finding {
  std::string id;   // of the rule that speaks
  std::string key;  // may be empty
  base::Json from;  // of the key; null where nothing was set
  base::Json to;
  std::string message;
  std::string fix;  // empty where nothing is to be done
};

// "C14: message: fix", as the command line prints a finding.
std::string to_text(const Finding& finding);

}  // namespace weft::config
