// The words of a command line, in the order typed: what each asks for, before anything is applied.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/codec.h"
#include "weft/config/field.h"
#include "weft/config/finding.h"
#include "weft/words/harness/harness_flags.h"
#include "weft/words/megatron/launch.h"
#include "weft/words/megatron/megatron.h"

namespace weft::words {

// Who reads. `weft perf` follows the flags that choose a recipe, a window and a comparison; every
// other command follows those that choose the recipe, and says of the rest that they change
// nothing.
enum class Audience { Run, Perf };

// One request: a key gets a value, or a flag's effect takes place.
struct Asked {
  std::string typed;                     // "--moe_a2a_overlap false", for messages
  int place = 0;                         // of its first word, from 1
  std::string key;                       // empty where the flag has an effect
  std::optional<config::Written> value;  // nothing: the key gets its default back
  std::optional<Effect> effect;
  std::string text;                        // what the flag was given, for its effect
  const MegatronWord* megatron = nullptr;  // of Effect::Unmodelled
};

struct Words {
  std::vector<std::string> meant;            // the words themselves, as they are read (pasted.h)
  std::string program;                       // the script that the line starts; empty: none
  Launch launch;                             // what starts it
  std::optional<std::string> recipe;         // a name or a path
  std::vector<std::filesystem::path> files;  // of --config-file
  std::vector<Asked> asked;
  HarnessSelection harness;
  // Behind flags that are unknown or take several values: one may be the recipe, where none is
  // named.
  std::vector<std::string> behind_flags;
  std::vector<config::Finding> warnings;
  std::vector<std::string> complaints;  // what is wrong; the rest is read all the same
};

// Reads `RECIPE`, `a.b=c`, `+a.b=c`, `++a.b=c`, `~a.b`, kebab-case flags and harness flags, also as
// people paste them (pasted.h). Never throws for what the user typed.
Words read_words(std::span<const std::string> words, Audience audience);

// "word 3 'model.num_layers=4'"
std::string place_text(const Asked& asked);

// What a user typed for a field: quotes are taken off, and null clears a text.
config::Written written_from_word(const config::Field& field, std::string_view typed);

}  // namespace weft::words
