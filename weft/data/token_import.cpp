#include "weft/data/token_import.h"

#include "weft/base/error.h"
#include "weft/base/files/folder_path.h"
#include "weft/base/text.h"
#include "weft/data/array_tokens.h"
#include "weft/data/jsonl_tokens.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;
using base::text;

InputFormat format_of(const fs::path& file, const ImportRequest& request) {
  if (request.format) return *request.format;
  const std::string ending = file.extension().string();
  if (ending == ".jsonl" || ending == ".ndjson") return InputFormat::Jsonl;
  if (ending == ".npy") return InputFormat::Npy;
  if (request.raw_type) return InputFormat::Raw;
  throw base::ConfigError(
      text("'{}': its ending is neither .jsonl, .ndjson nor .npy: for raw integers give --dtype "
           "(as in --dtype u16), else --format jsonl or npy",
           file.string()));
}

IntegerType raw_type(const ImportRequest& request) {
  if (request.raw_type) return *request.raw_type;
  throw base::ConfigError(text("raw integers have no type of their own: give --dtype, one of {}",
                               integer_type_words()));
}

// Checks a file before any is read; returns its tokens; 0: unknown.
std::uint64_t known_tokens(const base::InputFile& file, const ImportRequest& request) {
  switch (format_of(file.name(), request)) {
    case InputFormat::Jsonl:
      return 0;
    case InputFormat::Npy: {
      const NpyArray array = npy_array(file);
      return array.rows * array.columns;
    }
    case InputFormat::Raw:
      return raw_array(file, raw_type(request)).columns;
  }
  return 0;
}

void read_file(const base::InputFile& file, const ImportRequest& request, TokenSink& sink) {
  switch (format_of(file.name(), request)) {
    case InputFormat::Jsonl:
      read_jsonl(file, request.key, sink);
      break;
    case InputFormat::Npy:
      read_array(file, npy_array(file), sink);
      break;
    case InputFormat::Raw:
      read_array(file, raw_array(file, raw_type(request)), sink);
      break;
  }
  sink.end_file(file.size());
}

void check_dtype_is_used(const ImportRequest& request) {
  if (!request.raw_type) return;
  for (const fs::path& file : request.files) {
    if (format_of(file, request) == InputFormat::Raw) return;
  }
  throw base::ConfigError(
      "--dtype is the type of raw integers, and no file is raw: leave it out, or give --format "
      "raw");
}

void check_eod(std::string_view flag,
               std::optional<std::int64_t> id,
               const ImportRequest& request) {
  if (!id || !request.rules.vocab_size || *id < *request.rules.vocab_size) return;
  throw base::ConfigError(
      text("{} {} is outside a vocabulary of {}", flag, *id, *request.rules.vocab_size));
}

void check_output(const std::string& prefix) {
  if (prefix.empty() || prefix.ends_with('/')) {
    throw base::ConfigError(
        text("'{}' names no files to write: give a path without ending, as in --out data/corpus",
             base::shown(prefix)));
  }
  const std::string obstacle = base::folder_obstacle(fs::path(prefix).parent_path());
  if (!obstacle.empty()) {
    throw base::ConfigError(text("'{}' cannot be written: {}", base::shown(prefix), obstacle));
  }
  for (const std::string_view ending : {".bin", ".idx"}) {
    if (prefix.ends_with(ending)) {
      throw base::ConfigError(
          text("two files are written, .bin and .idx: give their path without ending: --out {}",
               base::shown(prefix.substr(0, prefix.size() - ending.size()))));
    }
    const std::string file = text("{}{}", prefix, ending);
    std::error_code error;
    if (fs::exists(fs::symlink_status(file, error))) {
      throw base::ConfigError(
          text("'{}' is there already and is not replaced: remove it, or give another --out",
               file));
    }
  }
}

void write_bin(const ImportRequest& request, IndexBuilder& index, Imported& imported) {
  base::write_whole(request.prefix + ".bin", [&](const base::Append& append) {
    TokenSink sink(request.rules, index, append);
    for (const fs::path& path : request.files) read_file(base::InputFile(path), request, sink);
    sink.flush();
    if (index.tokens() == 0) {
      throw base::ConfigError(text("there is no token in {}: nothing was written",
                                   request.files.size() == 1
                                       ? text("'{}'", request.files.front().string())
                                       : text("these {} files", request.files.size())));
    }
    imported.empty_documents = sink.empty_documents();
    imported.largest_id = sink.largest();
  });
}

// Removes the .bin on failure: alone it is useless and would block the next attempt.
void write_idx(const std::string& prefix, const IndexBuilder& index, Imported& imported) {
  try {
    base::write_whole(prefix + ".idx", [&](const base::Append& append) {
      index.write([&](std::string_view bytes) {
        imported.idx_bytes += bytes.size();
        append(bytes);
      });
    });
  } catch (...) {
    std::error_code error;
    fs::remove(prefix + ".bin", error);
    throw;
  }
}

}  // namespace

std::uint64_t input_bytes(const std::vector<fs::path>& files) {
  std::uint64_t all = 0;
  for (const fs::path& file : files) all += base::InputFile(file).size();
  return all;
}

std::optional<Imported> import_tokens(const ImportRequest& request) {
  check_output(request.prefix);
  check_dtype_is_used(request);
  check_eod("--append-eod", request.rules.append_eod, request);
  check_eod("--split-after", request.rules.split_after, request);
  Imported imported{.type = token_type_for(request.rules.vocab_size)};
  std::uint64_t least = 0;
  for (const fs::path& path : request.files) {
    least += known_tokens(base::InputFile(path), request);
  }
  base::require_writable(request.prefix + ".bin", least * token_bytes(imported.type));
  IndexBuilder index(imported.type);
  try {
    write_bin(request, index, imported);
  } catch (const Stopped&) {
    return std::nullopt;
  }
  write_idx(request.prefix, index, imported);
  imported.documents = index.documents();
  imported.sequences = index.sequences();
  imported.tokens = index.tokens();
  imported.bin_bytes = imported.tokens * token_bytes(imported.type);
  return imported;
}

}  // namespace weft::data
