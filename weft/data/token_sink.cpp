#include "weft/data/token_sink.h"

#include <algorithm>
#include <limits>

#include "weft/base/check.h"

namespace weft::data {
namespace {

using base::text;

constexpr std::size_t kHeldBytes = std::size_t{1} << 20;
// A vocabulary fits std::int32_t.
constexpr std::int64_t kMostIds = std::numeric_limits<std::int32_t>::max();

std::string shown(std::int64_t id) {
  return id == std::numeric_limits<std::int64_t>::max() ? text("{} or more", id) : text("{}", id);
}

}  // namespace

void TokenSink::judge(std::span<const std::int64_t> ids, const Place& place) {
  const std::int64_t limit = rules_.vocab_size.value_or(kMostIds);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < limit) continue;
    throw base::ConfigError(
        rules_.vocab_size
            ? text("{}: id {} is outside a vocabulary of {}; give the one that the ids were made "
                   "with",
                   place(i),
                   shown(ids[i]),
                   limit)
            : text("{}: id {} is no token id; they are 0 to {}",
                   place(i),
                   shown(ids[i]),
                   limit - 1));
  }
  if (!ids.empty()) largest_ = std::max(largest_, std::ranges::max(ids));
}

void TokenSink::store(std::span<const std::int64_t> ids) {
  const std::size_t width = token_bytes(index_.type());
  for (const std::int64_t id : ids) {
    // little-endian: the low bytes come first
    bytes_.append(reinterpret_cast<const char*>(&id), width);
  }
  index_.add_tokens(ids.size());
  if (bytes_.size() >= kHeldBytes) flush();
}

void TokenSink::add(std::span<const std::int64_t> ids, const Place& place) {
  judge(ids, place);
  added_ += ids.size();
  while (rules_.split_after && !ids.empty()) {
    const auto end = std::ranges::find(ids, *rules_.split_after);
    if (end == ids.end()) break;
    const auto count = static_cast<std::size_t>(end - ids.begin()) + 1;
    store(ids.first(count));
    index_.end_document();
    ids = ids.subspan(count);
  }
  store(ids);
}

void TokenSink::end_document() {
  if (added_ == 0) ++empty_;
  if (!index_.open_is_empty()) {
    if (rules_.append_eod) {
      store(std::span(&*rules_.append_eod, 1));
      largest_ = std::max(largest_, *rules_.append_eod);
    }
    index_.end_document();
  }
  added_ = 0;
}

void TokenSink::reached(std::uint64_t bytes_of_file) const {
  if (!rules_.progress) return;
  if (rules_.progress(whole_files_ + bytes_of_file) == Rules::Next::Stop) throw Stopped();
}

void TokenSink::end_file(std::uint64_t bytes_of_file) {
  reached(bytes_of_file);
  whole_files_ += bytes_of_file;
}

void TokenSink::flush() {
  bin_(bytes_);
  bytes_.clear();
}

}  // namespace weft::data
