// Kebab-case flags: one per config key, from the field table, and Megatron-LM's own
// (words/megatron/megatron.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/field.h"
#include "weft/words/harness/harness_flags.h"
#include "weft/words/megatron/megatron.h"

namespace weft::words {

// True if the word is a flag; a negative number is a value.
bool is_flag(std::string_view word);

// Meaning of a kebab-case flag: a key of the table, or a word of Megatron-LM.
struct KebabFlag {
  enum class Takes {
    Nothing,  // presence is enough
    Value,
    Choice,  // a switch, optionally followed by true or false
    Values,  // one word with commas, or several words
  };
  std::string name;  // "--expert-model-parallel-size"
  Takes takes = Takes::Value;
  std::string set;                       // "model.num_layers={}", with {} for the value
  const config::Field* field = nullptr;  // field of the key with this name; nullptr: none
  MegatronFlag megatron;                 // replaces `set`
};

// Finds "--expert-model-parallel-size", "--no-sequence-parallel"; nullopt: unknown. A name in
// several sections means that of comm_overlap, then model, train, optimizer and ddp.
std::optional<KebabFlag> find_kebab_flag(std::string_view name);

// Names of all flags that Weft supports, for completion.
std::vector<std::string> kebab_flag_names();

// "did you mean '--expert-model-parallel-size'?", among kebab-case and harness flags.
std::string flag_hint(std::string_view name);

}  // namespace weft::words
