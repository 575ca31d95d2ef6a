#include "weft/checkpoint/state_reader.h"

#include <algorithm>
#include <cstring>

#include "weft/base/casts.h"
#include "weft/base/crc32c.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/checkpoint/shard.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/tensor/stream.h"

namespace weft::checkpoint {
namespace {

using base::at;
using base::text;

constexpr std::int64_t kPieceElements = 1 << 20;  // elements of a tensor on the host at once
constexpr std::size_t kMostOpen = 16;             // open shards

[[noreturn]] void throw_damaged(const std::filesystem::path& file, const std::string& what) {
  throw base::ConfigError(
      text("'{}' is damaged: {}; {}", file.string(), what, way_back(file.parent_path())));
}

}  // namespace

StateReader::StateReader(const Manifest& manifest, std::filesystem::path folder)
    : manifest_(manifest), folder_(std::move(folder)) {}

StateReader::~StateReader() {
  for (const Buffer& buffer : buffers_) {
    try {
      if (buffer.uploaded.stream != nullptr) buffer.uploaded.stream->host_wait(buffer.uploaded);
    } catch (const std::exception&) {
      // The stream keeps the error and reports it at the next wait.
    }
  }
}

const StoredState& StateReader::find(const std::string& name) const {
  const auto found = manifest_.states.find(name);
  if (found != manifest_.states.end()) return found->second;
  throw base::ConfigError(text("'{}' has no tensor '{}'", folder_.string(), name));
}

void StateReader::read(const std::string& name, const tensor::Slice& slice, std::span<float> out) {
  const StoredState& state = find(name);
  const std::string where = text("'{}': tensor '{}'", folder_.string(), name);
  if (state.shape != slice.global || !is_floating(state.dtype)) {
    throw base::ConfigError(text("{} is {} {}; floating point of shape {} expected",
                                 where,
                                 word(state.dtype),
                                 state.shape.print(),
                                 slice.global.print()));
  }
  if (out.empty()) return;
  std::vector<std::byte> values(out.size() * element_bytes(state.dtype));
  read_piece(name, state, slice, values);
  read_elements({.where = where,
                 .dtype = state.dtype,
                 .shape = {std::ssize(out)},
                 .bytes = values.size(),
                 .read = bytes_of(std::span<const std::byte>(values))},
                0,
                out);
}

void StateReader::read_bytes(const std::string& name,
                             FileDtype dtype,
                             const tensor::Slice& slice,
                             std::span<std::byte> out) {
  const StoredState& state = find(name);
  require_like(name, state, dtype, slice.global);
  if (!out.empty()) read_piece(name, state, slice, out);
}

std::optional<FileDtype> StateReader::dtype_of(const std::string& name) const {
  const auto found = manifest_.states.find(name);
  return found == manifest_.states.end() ? std::nullopt : std::optional(found->second.dtype);
}

void StateReader::require_like(const std::string& name,
                               const StoredState& state,
                               FileDtype dtype,
                               const tensor::Shape& shape) const {
  if (state.shape == shape && state.dtype == dtype) return;
  throw base::ConfigError(text("'{}': tensor '{}' is {} {}, and this run's is {} {}",
                               folder_.string(),
                               name,
                               word(state.dtype),
                               state.shape.print(),
                               word(dtype),
                               shape.print()));
}

std::vector<std::string> StateReader::verify(const std::function<void(std::uint64_t bytes)>& read) {
  struct Piece {
    const StoredSlice* slice = nullptr;
    FileDtype dtype = FileDtype::F32;
  };
  std::vector<std::vector<Piece>> by_file(manifest_.files.size());
  for (const auto& [name, state] : manifest_.states) {
    for (const StoredSlice& slice : state.slices) {
      by_file[slice.file].push_back({.slice = &slice, .dtype = state.dtype});
    }
  }
  std::vector<std::string> wrong;
  std::uint64_t done = 0;
  for (std::size_t index = 0; index < by_file.size(); ++index) {
    std::ranges::sort(by_file[index], {}, [](const Piece& piece) { return piece.slice->at; });
    try {
      file(index);
      for (const Piece& piece : by_file[index]) {
        const std::uint64_t end = bytes_of(*piece.slice, piece.dtype);
        for (std::uint64_t at = 0; at < end; at += kBlockBytes) {
          load_block(*piece.slice, at / kBlockBytes, std::min(kBlockBytes, end - at));
          read(done += block_.size());
        }
      }
    } catch (const base::ConfigError& error) {
      wrong.push_back(error.what());
    } catch (const base::SystemError& error) {
      wrong.push_back(error.what());
    }
  }
  return wrong;
}

void StateReader::read(tensor::Stream& stream, const StateEntry& entry) {
  const StoredState& state = find(entry.name);
  const FileDtype dtype = file_dtype(entry.tensor.dtype());
  require_like(entry.name, state, dtype, entry.slice.global);
  const auto size = static_cast<std::int64_t>(element_bytes(dtype));
  tensor::Slice piece = entry.slice;
  for (std::int64_t done = 0; done < entry.slice.elements.count; done += kPieceElements) {
    piece.elements = {.begin = entry.slice.elements.begin + done,
                      .count = std::min(kPieceElements, entry.slice.elements.count - done)};
    Buffer& buffer = buffers_[turn_ ^= 1];
    if (buffer.uploaded.stream != nullptr) buffer.uploaded.stream->host_wait(buffer.uploaded);
    const std::size_t bytes = at(piece.elements.count * size);
    if (buffer.bytes.size() < bytes) buffer.bytes.resize(bytes);
    const std::span<std::byte> values = std::span(buffer.bytes).first(bytes);
    read_piece(entry.name, state, piece, values);
    stream.upload(entry.tensor.raw(stream) + done * size, values.data(), std::ssize(values));
    buffer.uploaded = stream.record();
  }
}

void StateReader::read_piece(const std::string& name,
                             const StoredState& state,
                             const tensor::Slice& piece,
                             std::span<std::byte> out) {
  const std::vector<tensor::Run> wanted = tensor::runs_of(piece);
  const std::int64_t first = wanted.front().global;
  const tensor::Range hull{.begin = first,
                           .count = wanted.back().global + wanted.back().count - first};
  const std::size_t size = element_bytes(state.dtype);
  std::vector<tensor::Range> filled;
  for (const StoredSlice& stored : state.slices) {
    for (const Part& part : parts(stored, wanted, hull)) {
      copy(stored,
           state.dtype,
           static_cast<std::uint64_t>(part.from) * size,
           out.subspan(at(part.to) * size, at(part.count) * size));
      filled.push_back({.begin = part.to, .count = part.count});
    }
  }
  std::ranges::sort(filled, {}, &tensor::Range::begin);
  std::int64_t end = 0;
  for (const tensor::Range& range : filled) {
    if (range.begin > end) break;
    end = std::max(end, range.end());
  }
  if (end == piece.elements.count) return;
  throw_damaged(folder_ / kManifestName,
                text("tensor '{}' lacks its element {}", name, piece.elements.begin + end));
}

// Intersects both ascending lists of runs in one pass.
std::vector<StateReader::Part> StateReader::parts(const StoredSlice& stored,
                                                  const std::vector<tensor::Run>& wanted,
                                                  const tensor::Range& hull) {
  std::vector<Part> all;
  const std::vector<tensor::Run> held = tensor::runs_in(stored.slice, hull);
  for (auto a = wanted.begin(), b = held.begin(); a != wanted.end() && b != held.end();) {
    const tensor::Range both = tensor::common({.begin = a->global, .count = a->count},
                                              {.begin = b->global, .count = b->count});
    if (both.count > 0) {
      all.push_back({.to = a->local + both.begin - a->global,
                     .from = b->local + both.begin - b->global,
                     .count = both.count});
    }
    const bool ends_first = a->global + a->count <= b->global + b->count;
    ends_first ? ++a : ++b;
  }
  return all;
}

// Reads whole blocks in place and copies out of partial ones.
void StateReader::copy(const StoredSlice& stored,
                       FileDtype dtype,
                       std::uint64_t begin,
                       std::span<std::byte> out) {
  const std::uint64_t end = bytes_of(stored, dtype);
  while (!out.empty()) {
    const std::uint64_t block = begin / kBlockBytes;
    const std::uint64_t inside = begin - block * kBlockBytes;
    const std::uint64_t size = std::min(kBlockBytes, end - block * kBlockBytes);
    const std::size_t count = std::min<std::size_t>(out.size(), size - inside);
    if (count == size) {
      read_block(stored, block, out.first(count));
    } else {
      if (loaded_ != &stored || loaded_block_ != block) load_block(stored, block, size);
      std::memcpy(out.data(), block_.data() + inside, count);
    }
    out = out.subspan(count);
    begin += count;
  }
}

void StateReader::load_block(const StoredSlice& stored, std::uint64_t block, std::uint64_t size) {
  loaded_ = nullptr;
  block_.resize(size);
  read_block(stored, block, block_);
  loaded_ = &stored;
  loaded_block_ = block;
}

void StateReader::read_block(const StoredSlice& stored,
                             std::uint64_t block,
                             std::span<std::byte> out) {
  const std::uint64_t begin = stored.at + block * kBlockBytes;
  const base::InputFile& from = file(stored.file);
  from.read(begin, out);
  const std::uint32_t found = base::crc32c(out);
  if (found == stored.checksums[block]) return;
  throw_damaged(from.name(),
                text("its {} bytes from byte {} on have checksum {}, and {} says {}",
                     out.size(),
                     begin,
                     found,
                     kManifestName,
                     stored.checksums[block]));
}

// Opens and checks a file at first use, and again after the cache was cleared.
const base::InputFile& StateReader::file(std::size_t index) {
  if (const auto found = open_.find(index); found != open_.end()) return found->second;
  if (open_.size() == kMostOpen) open_.clear();
  const StoredFile& stored = manifest_.files[index];
  base::InputFile opened(folder_ / stored.name);
  if (opened.size() != stored.bytes) {
    throw_damaged(
        opened.name(),
        text("it has {} bytes, and {} says {}", opened.size(), kManifestName, stored.bytes));
  }
  std::vector<std::byte> header(stored.header_bytes);
  opened.read(0, header);
  if (base::crc32c(header) != stored.header_checksum) {
    throw_damaged(opened.name(),
                  text("its header has another checksum than {} says", kManifestName));
  }
  return open_.emplace(index, std::move(opened)).first->second;
}

}  // namespace weft::checkpoint
