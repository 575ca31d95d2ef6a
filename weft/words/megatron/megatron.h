// Words of Megatron-LM and Megatron Bridge that are no key of Weft's (megatron.def): flags of the
// one and keys of the other, with what each means here.
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
    Sets,            // `text`: settings `key=value`, {} for the word's own value
    Acts,            // `effect`
    Idle,            // changes nothing here: H14
    Noted,           // learns the same, and is not in the price: H23
    Unmodelled,      // learns something else: H21, and no training
    UnmodelledWith,  // so where `key` is not at its default; else idle
    AsKey,           // so where `key` has another value; else accepted in silence
    Refused,
  };
  Kind kind = Kind::Idle;
  std::string_view text;  // settings, or why
  std::string_view key = "";
  std::optional<Effect> effect = std::nullopt;
};

struct MegatronWord {
  enum class Takes { Nothing, Value, Values };
  std::string key;   // "model.normalization"; empty: a flag alone
  std::string flag;  // "--normalization"; empty: a key alone
  Takes takes = Takes::Nothing;
  bool says = true;       // what the flag says where it takes nothing
  std::string_view same;  // values that Weft has anyway, separated by spaces
  MegatronMeaning meaning;

  // Whether --no-X may stand beside --X.
  bool has_opposite() const;
  // Whether this value is what Weft does anyway.
  bool is_same(std::string_view value) const;
};

std::span<const MegatronWord> megatron_words();

const MegatronWord* find_megatron_key(std::string_view key);

// A flag, and what it says where it takes nothing; `word` is null where there is no such flag.
struct MegatronFlag {
  const MegatronWord* word = nullptr;
  bool says = true;
};
MegatronFlag find_megatron_flag(std::string_view flag);

}  // namespace weft::words
