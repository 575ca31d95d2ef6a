// Rule of the control surface: its texts, and the function that judges a config.
//
// Rules are data: `weft check` judges by the table, `--explain` and docs/rules.md print it, and a
// test checks every rule's example.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/finding.h"

namespace weft::rules {

class Judge;

enum class Kind {
  Error,      // the run is refused
  Warning,    // the run goes on
  Automatic,  // a key is set
  Mended,     // a key is set, with a warning: the user asked for another value
};

struct Rule {
  std::string_view id;  // as in docs/rules.md; W...: Weft's own
  Kind kind = Kind::Error;
  std::string_view when;  // the condition, in keys
  std::string_view then;  // the consequence
  std::string_view why;   // the reason
  // Overrides over the defaults, separated by spaces, that trigger this rule and no other refusal.
  std::string_view example;
  std::string_view command = "check";  // command that takes the example
  std::string_view also = "";          // other ids of this rule
  void (*judge)(Judge&) = nullptr;     // nullptr: judged earlier, while words are read
};

std::string_view word(Kind kind);

// All rules in order of judgement: automatic settings come before the rules that judge them.
std::span<const Rule> rules();
// Looks up an id or an alternative id; nullptr: unknown.
const Rule* find_rule(std::string_view id);

// Topics, one table each.
struct Topic {
  std::string_view name;
  std::span<const Rule> rules;
};
std::span<const Topic> topics();

}  // namespace weft::rules
