// Files of a Hugging Face folder by name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace weft::checkpoint {

// True for config.json and files with the names that a model's own weights have: replacing a folder
// overwrites them. Adapters, backups and other formats stay.
bool is_of_the_model(std::string_view name);

// True if the folder has a weight file.
bool holds_weights(const std::filesystem::path& folder);

// True for files that define tokenization and generation: tokenizer with vocabulary and settings,
// chat template, generation_config.json.
bool is_of_the_text(std::string_view name);

// True if the folder has a tokenizer.
bool has_tokenizer(const std::filesystem::path& folder);

// Copies those files, each complete or not at all.
void copy_text_files(const std::filesystem::path& from, const std::filesystem::path& to);

// "model.safetensors", or "model-00001-of-00003.safetensors" for several; `number` from 0.
std::string weights_file_name(std::size_t number, std::size_t files);

inline constexpr const char* kWeightsIndexName = "model.safetensors.index.json";

}  // namespace weft::checkpoint
