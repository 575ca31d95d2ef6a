// Vocabulary sizes of well-known tokenizers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::words {

// Size for Megatron-LM's tokenizer `type` and the name or path of the tokenizer; nullopt: unknown.
// Counts added tokens, not the embedding's padding.
std::optional<std::int64_t> tokenizer_vocabulary(std::string_view type, std::string_view model);

}  // namespace weft::words
