// The files of a Hugging Face folder by their names.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace weft::checkpoint {

// config.json and files of weights, in any format: what gives way where a folder is replaced.
bool is_of_the_model(std::string_view name);

// Whether a file of weights is in the folder.
bool holds_weights(const std::filesystem::path& folder);

// The files that turn text into token ids and back, and those that say how to generate: tokenizer,
// its vocabulary and settings, chat template, generation_config.json.
bool is_of_the_text(std::string_view name);

// Whether the folder has a tokenizer.
bool has_tokenizer(const std::filesystem::path& folder);

// Copies those files, whole or not at all.
void copy_text_files(const std::filesystem::path& from, const std::filesystem::path& to);

// "model.safetensors", or "model-00001-of-00003.safetensors" of several; `number` from 0.
std::string weights_file_name(std::size_t number, std::size_t files);

inline constexpr const char* kWeightsIndexName = "model.safetensors.index.json";

}  // namespace weft::checkpoint
