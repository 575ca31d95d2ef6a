// Finding: message to the user about a config, from a rule or from reading words.
#pragma once

#include <string>

#include "weft/base/json.h"

namespace weft::config {

struct Finding {
  std::string id;   // rule id
  std::string key;  // may be empty
  base::Json from;  // old and new value of the key; null: not changed
  base::Json to;
  std::string message;
  std::string fix;  // empty: no action needed
};

// "C14: message: fix", the form that the command line prints.
std::string to_text(const Finding& finding);

}  // namespace weft::config
