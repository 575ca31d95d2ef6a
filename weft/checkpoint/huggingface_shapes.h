// The shapes of a Hugging Face model, for commands that compute nothing of it: config.json alone is
// read. More families are known here than the engine computes, the format of the weights does not
// matter, and a key that is not known is told of and passed over.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/model_config.h"

namespace weft::checkpoint {

struct ModelShapes {
  std::string model_type;
  // With layers of multi-token prediction where the file has them. A config.json names no length of
  // sequences: model.seq_length is the smaller of kUsualLength and max_position_embeddings.
  config::ModelConfig model;
  std::vector<std::string> remarks;  // what the shapes leave out
  // Why this build cannot read the weights: "weights of gpt_oss". Empty: it can.
  std::vector<std::string> unread;
};

inline constexpr std::int64_t kUsualLength = 4096;  // tokens

// `text` is the content of `file`. ConfigError names the file, the key, what was expected and what
// was found; for a family that is not known, those that are.
ModelShapes parse_model_shapes(std::string_view text, const std::string& file);

// The same of a folder with a config.json, or of such a file. MissingInput where it is not there.
ModelShapes read_model_shapes(const std::filesystem::path& folder_or_file);

// The model types whose weights this build does not read: "llama, mistral ... and minimax_m2".
std::string shape_family_words();
bool is_shape_family(std::string_view model_type);

}  // namespace weft::checkpoint
