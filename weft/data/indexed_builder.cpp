#include "weft/data/indexed_builder.h"

#include <algorithm>

#include "weft/base/check.h"

namespace weft::data {
namespace {

constexpr std::int64_t kVocabularyOfI32 = 65500;
constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

class Block {
 public:
  explicit Block(const base::Append& append) : append_(append) {}

  template <typename Number>
  void add(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    if (bytes_.size() >= kBlockBytes) flush();
  }
  void flush() {
    append_(bytes_);
    bytes_.clear();
  }

 private:
  const base::Append& append_;
  std::string bytes_;
};

}  // namespace

TokenType token_type_for(std::optional<std::int64_t> vocab_size) {
  return vocab_size && *vocab_size < kVocabularyOfI32 ? TokenType::U16 : TokenType::I32;
}

void IndexBuilder::add_tokens(std::uint64_t count) {
  tokens_ += count;
  while (count > 0) {
    const std::uint64_t taken = std::min(count, longest_ - open_tokens_);
    open_tokens_ += taken;
    count -= taken;
    if (open_tokens_ == longest_) end_sequence();
  }
}

void IndexBuilder::end_sequence() {
  if (open_sequences_ > 0) continued_.push_back(lengths_.size());
  lengths_.push_back(static_cast<std::int32_t>(open_tokens_));
  ++open_sequences_;
  open_tokens_ = 0;
}

void IndexBuilder::end_document() {
  if (open_tokens_ > 0) end_sequence();
  open_sequences_ = 0;
}

void IndexBuilder::write(const base::Append& append) const {
  CHECK(open_is_empty(), "{} tokens of a document that has not ended", open_tokens_);
  append(kIndexMagic);
  Block block(append);
  block.add(kIndexVersion);
  block.add(type_);
  block.add(sequences());
  block.add(documents() + 1);
  for (const std::int32_t length : lengths_) block.add(length);
  std::int64_t offset = 0;
  for (const std::int32_t length : lengths_) {
    block.add(offset);
    offset += length * static_cast<std::int64_t>(token_bytes(type_));
  }
  auto skipped = continued_.begin();
  for (std::uint64_t i = 0; i < sequences(); ++i) {
    if (skipped != continued_.end() && *skipped == i) {
      ++skipped;
    } else {
      block.add(static_cast<std::int64_t>(i));
    }
  }
  block.add(static_cast<std::int64_t>(sequences()));
  block.flush();
}

}  // namespace weft::data
