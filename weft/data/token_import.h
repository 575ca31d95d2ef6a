// Imports token ids from other formats into Megatron's indexed dataset.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/data/indexed_index.h"
#include "weft/data/token_sink.h"

namespace weft::data {

enum class InputFormat { Jsonl, Npy, Raw };

struct ImportRequest {
  std::vector<std::filesystem::path> files;  // concatenated
  std::string prefix;                        // path of both files to write, without extension
  std::optional<InputFormat> format = {};    // nullopt: by each file's extension
  std::optional<IntegerType> raw_type = {};
  std::string key = "tokens";
  TokenSink::Rules rules = {};
};

struct Imported {
  TokenType type = TokenType::I32;
  std::uint64_t documents = 0, sequences = 0, tokens = 0;
  std::uint64_t empty_documents = 0;  // left out
  std::int64_t largest_id = 0;
  std::uint64_t bin_bytes = 0, idx_bytes = 0;
};

// Bytes of all files, for progress. Throws MissingInput if a file is missing.
std::uint64_t input_bytes(const std::vector<std::filesystem::path>& files);

// Writes both files or neither, also when stopped (nullopt). Existing files are not replaced.
// Memory does not grow with the input, except by four bytes per document and the longest JSON line.
std::optional<Imported> import_tokens(const ImportRequest& request);

}  // namespace weft::data
