// A rule of the control surface: what it says, and the function that judges a config by it.
//
// Rules are data: `weft check` judges by the table, `--explain` and docs/rules.md print it, and a
// test holds every rule's example against it.
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
  Mended,     // a key is set, with a warning: the user asked for something else
};

struct Rule {
  std::string_view id;  // as in docs/rules.md; W... are Weft's own
  Kind kind = Kind::Error;
  std::string_view when;  // the condition, in keys
  std::string_view then;  // what follows
  std::string_view why;   // the story
  // Overrides over the defaults, separated by spaces, under which this rule speaks and no other
  // refuses.
  std::string_view example;
  std::string_view command = "check";  // that takes the example
  std::string_view also = "";          // other ids of the same rule
  void (*judge)(Judge&) = nullptr;     // null: judged before the table, where words are read
};

std::string_view word(Kind kind);

// Every rule, in the order of judgement: what is set automatically comes before what judges it.
std::span<const Rule> rules();
// By its id or one of its other ids; null where there is none.
const Rule* find_rule(std::string_view id);

// The topics, each a table of its own.
struct Topic {
  std::string_view name;
  std::span<const Rule> rules;
};
std::span<const Topic> topics();

}  // namespace weft::rules
