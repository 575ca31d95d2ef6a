#include "weft/words/tokenizer_vocabulary.h"

#include <string>

namespace weft::words {
namespace {

// The first entry contained in the name counts: longer names precede their prefixes.
struct Family {
  std::string_view name;
  std::int64_t tokens;
};
constexpr Family kFamilies[] = {{"deepseek-v3", 128815},
                                {"deepseek-r1", 128815},
                                {"deepseek-v2", 100015},
                                {"deepseek-coder-v2", 100015},
                                {"deepseek-moe", 100015},
                                {"qwen3", 151669},
                                {"qwen2.5", 151665},
                                {"qwen2", 151646},
                                {"qwen1.5", 151646},
                                {"mixtral-8x7b", 32000},
                                {"mixtral-8x22b-v0.1", 32000},
                                {"mistral-7b-v0.1", 32000},
                                {"llama-2", 32000},
                                {"llama2", 32000},
                                {"llama-3", 128256},
                                {"llama3", 128256},
                                {"kimi-k2", 163840},
                                {"moonlight", 163840},
                                {"gpt-oss", 200019},
                                {"olmoe", 50280},
                                {"glm-4.5", 151365},
                                {"gpt2", 50257}};

// Sizes by type alone.
constexpr Family kTypes[] = {{"GPT2BPETokenizer", 50257}, {"TikTokenizer", 131072}};

std::string tokenizer_name(std::string_view model) {
  std::string name;
  for (const char c : model) {
    if (c >= 'A' && c <= 'Z') {
      name += static_cast<char>(c - 'A' + 'a');
    } else {
      name += c == '_' ? '-' : c;
    }
  }
  return name;
}

}  // namespace

std::optional<std::int64_t> tokenizer_vocabulary(std::string_view type, std::string_view model) {
  const std::string name = tokenizer_name(model);
  for (const Family& family : kFamilies) {
    if (!name.empty() && name.find(family.name) != std::string::npos) return family.tokens;
  }
  for (const Family& known : kTypes) {
    if (known.name == type) return known.tokens;
  }
  return std::nullopt;
}

}  // namespace weft::words
