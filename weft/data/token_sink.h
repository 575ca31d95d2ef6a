// Where the readers of foreign files put token ids: checked, stored, cut into documents.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "weft/base/file.h"
#include "weft/data/indexed_builder.h"

namespace weft::data {

// Thrown by TokenSink::reached() where the user has had enough.
struct Stopped {};

class TokenSink {
 public:
  struct Rules {
    std::optional<std::int64_t> vocab_size = {};
    std::optional<std::int64_t> append_eod = {};   // put behind every document
    std::optional<std::int64_t> split_after = {};  // ends a document
    // Gets the bytes read of the input; gives whether to go on.
    enum class Next { GoOn, Stop };
    std::function<Next(std::uint64_t bytes)> progress = {};
  };
  // Names the place of the i-th id of a span: "'a.npy', row 3, token 7".
  using Place = std::function<std::string(std::size_t)>;

  TokenSink(const Rules& rules, IndexBuilder& index, const base::Append& bin)
      : rules_(rules), index_(index), bin_(bin) {}

  // To the open document. ConfigError with its place for an id outside the vocabulary.
  void add(std::span<const std::int64_t> ids, const Place& place);
  void end_document();
  // Bytes of the file that is being read; a file that is read whole is told of by end_file.
  void reached(std::uint64_t bytes_of_file) const;
  void end_file(std::uint64_t bytes_of_file);
  // Puts what is held into the .bin; call it last.
  void flush();

  std::uint64_t empty_documents() const { return empty_; }  // left out
  std::int64_t largest() const { return largest_; }

 private:
  void judge(std::span<const std::int64_t> ids, const Place& place);
  void store(std::span<const std::int64_t> ids);

  const Rules& rules_;
  IndexBuilder& index_;
  const base::Append& bin_;
  std::string bytes_;
  std::uint64_t added_ = 0;  // to the document that the reader has open
  std::uint64_t empty_ = 0, whole_files_ = 0;
  std::int64_t largest_ = -1;
};

}  // namespace weft::data
