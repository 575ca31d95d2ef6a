// Words of a command line in the order typed, each with its request, before they are applied.
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

// Reader of the words. `weft perf` follows the flags for a recipe, a window and a comparison. Other
// commands follow only the flags for the recipe, and report that the rest changes nothing.
enum class Audience { Run, Perf };

// One request: sets a key, or triggers a flag's effect.
struct Asked {
  std::string typed;                     // "--moe_a2a_overlap false", for messages
  int place = 0;                         // index of its first word, from 1
  std::string key;                       // empty: the flag has an effect
  std::optional<config::Written> value;  // nullopt: restores the key's default
  std::optional<Effect> effect;
  std::string text;                        // the flag's value, for its effect
  const MegatronWord* megatron = nullptr;  // set for Effect::Unmodelled
};

struct Words {
  std::vector<std::string> meant;            // the words as read (pasted.h)
  std::string program;                       // script that the line starts; empty: none
  Launch launch;                             // launcher of the line
  std::optional<std::string> recipe;         // a name or a path
  std::vector<std::filesystem::path> files;  // files of --config-file
  std::vector<Asked> asked;
  HarnessSelection harness;
  // Words behind flags that are unknown or take several values: one may be the recipe, if none is
  // named.
  std::vector<std::string> behind_flags;
  std::vector<config::Finding> warnings;
  std::vector<std::string> complaints;  // errors; the rest is read too
};

// Reads `RECIPE`, `a.b=c`, `+a.b=c`, `++a.b=c`, `~a.b`, kebab-case flags and harness flags, also
// from pasted lines (words/megatron/pasted.h). Never throws for user input.
Words read_words(std::span<const std::string> words, Audience audience);

// "word 3 'model.num_layers=4'"
std::string place_text(const Asked& asked);

// Value for a field from a typed word: strips quotes; null clears a text.
config::Written written_from_word(const config::Field& field, std::string_view typed);

}  // namespace weft::words
