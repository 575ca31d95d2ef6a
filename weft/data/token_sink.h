// Sink of the importing readers: checks token ids, stores them, and cuts documents.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "weft/base/files/file.h"
#include "weft/data/indexed_builder.h"

namespace weft::data {

// Thrown by TokenSink::reached() when the user stops the import.
struct Stopped {};

class TokenSink {
 public:
  struct Rules {
    std::optional<std::int64_t> vocab_size = {};
    std::optional<std::int64_t> append_eod = {};   // appended to every document
    std::optional<std::int64_t> split_after = {};  // ends a document
    // Called with the input bytes read so far; returns whether to go on.
    enum class Next { GoOn, Stop };
    std::function<Next(std::uint64_t bytes)> progress = {};
  };
  // Place of the i-th id of a span: "'a.npy', row 3, token 7".
  using Place = std::function<std::string(std::size_t)>;

  TokenSink(const Rules& rules, IndexBuilder& index, const base::Append& bin)
      : rules_(rules), index_(index), bin_(bin) {}

  // Adds to the open document. Throws ConfigError with the place of an id outside the vocabulary.
  void add(std::span<const std::int64_t> ids, const Place& place);
  void end_document();
  // Progress in bytes of the current file; end_file reports a file that was read completely.
  void reached(std::uint64_t bytes_of_file) const;
  void end_file(std::uint64_t bytes_of_file);
  // Writes buffered ids to the .bin; call it last.
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
  std::uint64_t added_ = 0;  // ids in the reader's open document
  std::uint64_t empty_ = 0, whole_files_ = 0;
  std::int64_t largest_ = -1;
};

}  // namespace weft::data
