// Kebab-case flags: one for every config key, made from the field table, and Megatron-LM's own
// (megatron.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/field.h"
#include "weft/words/harness/harness_flags.h"
#include "weft/words/megatron/megatron.h"

namespace weft::words {

// Whether a word opens a flag; a negative number is a value.
bool is_flag(std::string_view word);

// What a kebab-case flag means: a key of the table, or a word of Megatron-LM.
struct KebabFlag {
  enum class Takes {
    Nothing,  // its presence says it
    Value,
    Choice,  // a switch, after which true or false may be written
    Values,  // one word with commas, or several words
  };
  std::string name;  // "--expert-model-parallel-size"
  Takes takes = Takes::Value;
  std::string set;                       // "model.num_layers={}", {} for the value
  const config::Field* field = nullptr;  // of the key with this name, if there is one
  MegatronFlag megatron;                 // in place of `set`
};

// Of "--expert-model-parallel-size", "--no-sequence-parallel"; nothing where there is none. A name
// that several sections have means comm_overlap's, then model's, train's, optimizer's and ddp's.
std::optional<KebabFlag> find_kebab_flag(std::string_view name);

// Every name that asks for something Weft has, for completion.
std::vector<std::string> kebab_flag_names();

// "did you mean '--expert-model-parallel-size'?" among kebab-case and harness flags.
std::string flag_hint(std::string_view name);

}  // namespace weft::words
