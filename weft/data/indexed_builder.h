// Builder of the .idx file of Megatron's indexed dataset, as its tokens are counted
// (indexed_index.h has the format).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "weft/base/files/file.h"
#include "weft/data/indexed_index.h"

namespace weft::data {

// Megatron's choice: u16 for a vocabulary below 65500, else i32; i32 if unknown.
TokenType token_type_for(std::optional<std::int64_t> vocab_size);

// Documents in token order. Takes four bytes of memory per sequence. A document is one sequence,
// unless it is too long for the format's lengths.
class IndexBuilder {
 public:
  static constexpr std::uint64_t kLongest = std::numeric_limits<std::int32_t>::max();

  explicit IndexBuilder(TokenType type, std::uint64_t longest_sequence = kLongest)
      : type_(type), longest_(longest_sequence) {}

  // Adds tokens to the open document.
  void add_tokens(std::uint64_t count);
  // Ends the open document and opens the next; empty documents are dropped.
  void end_document();

  bool open_is_empty() const { return open_tokens_ == 0 && open_sequences_ == 0; }
  std::uint64_t documents() const { return lengths_.size() - continued_.size(); }
  std::uint64_t sequences() const { return lengths_.size(); }
  std::uint64_t tokens() const { return tokens_; }
  TokenType type() const { return type_; }

  // Writes the whole file; the last document must have ended.
  void write(const base::Append& append) const;

 private:
  void end_sequence();

  TokenType type_;
  std::uint64_t longest_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::uint64_t> continued_;  // sequences that continue a document
  std::uint64_t tokens_ = 0, open_tokens_ = 0, open_sequences_ = 0;
};

}  // namespace weft::data
