// Shapes of a Hugging Face model, for commands that do not compute. Reads only config.json. Accepts
// more families than the engine computes and any weight format; unknown keys give a remark.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/model_config.h"

namespace weft::checkpoint {

struct ModelShapes {
  std::string model_type;
  // Includes multi-token prediction layers of the file. config.json has no sequence length:
  // model.seq_length is the smaller of kUsualLength and max_position_embeddings.
  config::ModelConfig model;
  std::vector<std::string> remarks;  // parts missing in the shapes
  // Reasons why this build cannot read the weights, such as "weights of gpt_oss". Empty: it can.
  std::vector<std::string> unread;
};

inline constexpr std::int64_t kUsualLength = 4096;  // tokens

// Parses `text`, the content of `file`. ConfigError with file, key, expected and found value; for
// an unknown family with the known ones.
ModelShapes parse_model_shapes(std::string_view text, const std::string& file);

// Variant for a config.json or its folder. MissingInput if it does not exist.
ModelShapes read_model_shapes(const std::filesystem::path& folder_or_file);

// Model types whose weights this build cannot read: "llama, mistral ... and minimax_m2".
std::string shape_family_words();
bool is_shape_family(std::string_view model_type);

}  // namespace weft::checkpoint
