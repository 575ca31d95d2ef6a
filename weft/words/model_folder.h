// A Hugging Face model as a word of the command line, in the place of a recipe: `weft plan FOLDER`.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace weft::words {

// The words of a run that names one have no recipe, and checkpoint.pretrained_checkpoint is the
// word.
//
// The config.json that a word leads to: the one in a folder of that name, or a .json file that is
// named itself. nullopt: the word is no model, or a recipe of `recipes_folder` has that name (a
// folder of the same name is written ./NAME).
std::optional<std::filesystem::path> model_config_file(const std::filesystem::path& recipes_folder,
                                                       std::string_view word);

}  // namespace weft::words
