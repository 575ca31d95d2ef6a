// Token ids from foreign files into Megatron's indexed dataset.
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
  std::vector<std::filesystem::path> files;  // one after the other
  std::string prefix;                        // of the two files to write
  std::optional<InputFormat> format = {};    // none: by the ending of each file
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

// Bytes of all files, for a share of progress. MissingInput where one is not there.
std::uint64_t input_bytes(const std::vector<std::filesystem::path>& files);

// Writes both files, or none of them: also where it is stopped (nothing is given then). Files that
// are there already are not replaced. Memory does not grow with the input, but for four bytes a
// document and the longest line of JSON.
std::optional<Imported> import_tokens(const ImportRequest& request);

}  // namespace weft::data
