// Cases of judgement: overrides over the defaults, and the expected findings.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weft/rules/validate.h"

namespace weft::rules {

// Lists are separated by spaces.
struct Case {
  std::string_view name;
  std::string_view words;           // overrides over the defaults
  std::string_view errors = "";     // ids of all errors, exactly
  std::string_view warnings = "";   // ids among the warnings
  std::string_view automatic = "";  // ids among the automatic settings
  std::string_view after = "";      // key=value of the judged config
};

Verdict judge_words(std::string_view words);

// Ids of findings, each once.
std::set<std::string> ids_of(const std::vector<config::Finding>& findings);

void expect_settled(const Case& expected);

}  // namespace weft::rules
