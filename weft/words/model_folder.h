// Hugging Face model as a command-line word in place of a recipe: `weft plan FOLDER`.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace weft::words {

// config.json of a word: in a folder of that name, or a .json file itself. nullopt: the word is no
// model, or a recipe of `recipes_folder` has that name (write ./NAME for the folder). A run of such
// words has no recipe, and checkpoint.pretrained_checkpoint is the word.
std::optional<std::filesystem::path> model_config_file(const std::filesystem::path& recipes_folder,
                                                       std::string_view word);

}  // namespace weft::words
