#include "weft/checkpoint/huggingface/huggingface_files.h"

#include <algorithm>
#include <array>
#include <regex>

#include "weft/base/files/file.h"
#include "weft/base/text.h"

namespace weft::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostTextBytes = std::size_t{256} << 20;

constexpr auto kTextFiles = std::to_array<std::string_view>({
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
    "merges.txt",
    "special_tokens_map.json",
    "spiece.model",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
});

constexpr auto kTokenizers = std::to_array<std::string_view>({
    "spiece.model",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
});

template <std::size_t N>
bool is_among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_weights(std::string_view name) {
  return name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json") ||
         (name.starts_with("pytorch_model") &&
          (name.ends_with(".bin") || name.ends_with(".bin.index.json"))) ||
         name.ends_with(".gguf");
}

template <typename Matches>
std::vector<std::string> matching_names(const fs::path& folder, const Matches& matches) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (matches(name)) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

bool is_of_the_model(std::string_view name) {
  static const std::regex kModel(
      "config\\.json|model\\.safetensors(\\.index\\.json)?|model-[0-9]{5}-of-[0-9]{5}\\."
      "safetensors|"
      "pytorch_model(-[0-9]{5}-of-[0-9]{5})?\\.bin(\\.index\\.json)?");
  return std::regex_match(name.begin(), name.end(), kModel);
}

bool holds_weights(const fs::path& folder) { return !matching_names(folder, is_weights).empty(); }

// Custom tokenizers are tokenization_NAME.py and NAME.tiktoken.
bool is_of_the_text(std::string_view name) {
  return is_among(kTextFiles, name) || name.ends_with(".tiktoken") || name == "tiktoken.model" ||
         (name.starts_with("tokenization_") && name.ends_with(".py"));
}

bool has_tokenizer(const fs::path& folder) {
  return !matching_names(folder, [](std::string_view name) {
            return is_among(kTokenizers, name) || name.ends_with("tiktoken.model") ||
                   name.ends_with(".tiktoken");
          }).empty();
}

void copy_text_files(const fs::path& from, const fs::path& to) {
  for (const std::string& name : matching_names(from, is_of_the_text)) {
    if (!fs::is_regular_file(from / name)) continue;
    base::write_whole(to / name, base::read_text(from / name, kMostTextBytes));
  }
}

std::string weights_file_name(std::size_t number, std::size_t files) {
  if (files == 1) return "model.safetensors";
  return base::text("model-{:05}-of-{:05}.safetensors", number + 1, files);
}

}  // namespace weft::checkpoint
