// How many tokens the tokenizers of well-known models have.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::words {

// Of `type` as Megatron-LM names it and the name or path of the tokenizer; nothing where it is not
// known. Added tokens count, padding of the embedding does not.
std::optional<std::int64_t> tokenizer_vocabulary(std::string_view type, std::string_view model);

}  // namespace weft::words
