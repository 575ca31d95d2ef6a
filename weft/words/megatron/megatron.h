// Words of Megatron-LM (flags) and Megatron Bridge (keys) that are no key of Weft's (megatron.def),
// with their meaning here.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/words/harness/harness_flags.h"

namespace weft::words {

struct MegatronMeaning {
  enum class Kind {
    Sets,            // `text`: settings `key=value`, with {} for the word's value
    Acts,            // `effect`
    Idle,            // no effect here: H14
    Noted,           // equal training, not in the price: H23
    Unmodelled,      // different training: H21, refused for training
    UnmodelledWith,  // unmodelled if `key` is not at its default; otherwise idle
    AsKey,           // unmodelled if `key` has another value; otherwise silent
    Refused,
  };
  Kind kind = Kind::Idle;
  std::string_view text;  // settings, or the reason
  std::string_view key = "";
  std::optional<Effect> effect = std::nullopt;
};

struct MegatronWord {
  enum class Takes { Nothing, Value, Values };
  std::string key;   // "model.normalization"; empty: flag only
  std::string flag;  // "--normalization"; empty: key only
  Takes takes = Takes::Nothing;
  bool says = true;       // value of the flag without an argument
  std::string_view same;  // values that match Weft's behaviour, separated by spaces
  MegatronMeaning meaning;

  // True if --no-X exists besides --X.
  bool has_opposite() const;
  // True if the value matches Weft's behaviour.
  bool is_same(std::string_view value) const;
};

std::span<const MegatronWord> megatron_words();

const MegatronWord* find_megatron_key(std::string_view key);

// Flag with its value if it takes no argument; `word` is nullptr for an unknown flag.
struct MegatronFlag {
  const MegatronWord* word = nullptr;
  bool says = true;
};
MegatronFlag find_megatron_flag(std::string_view flag);

}  // namespace weft::words
