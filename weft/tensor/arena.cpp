#include "weft/tensor/arena.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "weft/base/check.h"

namespace weft::tensor {
namespace {

constexpr std::size_t kAlignment = 256;  // fits any vector unit and cache line

std::size_t round_up(std::size_t bytes, std::size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

std::size_t to_size(std::ptrdiff_t bytes) { return static_cast<std::size_t>(bytes); }

}  // namespace

void note_use(std::vector<Event>& uses, const Event& use) {
  for (Event& known : uses) {
    if (known.stream == use.stream) {
      known.ticket = std::max(known.ticket, use.ticket);
      return;
    }
  }
  uses.push_back(use);
}

std::optional<std::vector<Event>> Arena::take_at(std::byte* data, std::size_t bytes) {
  bytes = round_up(bytes, kAlignment);
  auto first = free_.upper_bound(data);
  if (first == free_.begin()) return std::nullopt;
  first = std::prev(first);
  if (!is_free(first, data + bytes)) return std::nullopt;
  const auto before = static_cast<std::size_t>(data - first->first);
  if (before > 0) first = split(first, before);
  join_up_to(first, bytes);
  return take_from(data, bytes);
}

std::optional<std::pair<std::byte*, std::vector<Event>>> Arena::take_lowest(
    std::size_t bytes,
    const Stream* user,
    std::span<const Extent> kept,
    std::uint64_t others,
    std::size_t may_grow) {
  bytes = round_up(bytes, kAlignment);
  const std::size_t size = slabs_.front().size();
  std::size_t offset = lowest(bytes, user, kept, std::numeric_limits<std::uint64_t>::max());
  if (offset + bytes > size + may_grow) {
    offset = lowest(bytes, user, kept, others);
    if (offset + bytes > size) offset = lowest(bytes, user, kept, 0);
  }
  if (const std::size_t end = offset + bytes; end > slabs_.front().size()) {
    grow(end - slabs_.front().size(), free_.end());
    if (begin() == nullptr) return std::nullopt;
  }
  std::byte* data = begin() + offset;
  return std::pair{data, take_at(data, bytes).value()};
}

// Lowest place beside the kept extents; if none is free, a place that ends above the region.
std::size_t Arena::lowest(std::size_t bytes,
                          const Stream* user,
                          std::span<const Extent> kept,
                          std::uint64_t others) const {
  std::size_t at = 0, end = 0;  // the place; the end of the free extent around it
  for (const auto& [data, piece] : free_) {
    if (given_ - piece.given < others && !is_ready(piece, user)) continue;
    const std::size_t offset = to_size(data - begin());
    if (offset != end) at = std::max(at, offset);
    end = offset + piece.bytes;
    at = lowest_beside(kept, at, bytes);
    if (at + bytes <= end) return at;
  }
  const std::size_t size = slabs_.front().size();
  return lowest_beside(kept, end == size ? at : std::max(at, size), bytes);
}

std::vector<Extent> Arena::occupied() const {
  if (slabs_.empty()) return {};
  std::vector<Extent> extents;
  const std::byte* at = begin();
  const auto note = [&](const std::byte* end) {
    if (end > at) extents.push_back({to_size(at - begin()), to_size(end - at)});
  };
  for (const auto& [data, piece] : free_) {
    note(data);
    at = data + piece.bytes;
  }
  note(begin() + slabs_.front().size());
  return extents;
}

void Arena::resize(std::size_t bytes) {
  const std::size_t now = slabs_.empty() ? 0 : slabs_.back().size();
  if (bytes > now && region_->grows_in_place()) {
    grow(bytes - now, free_.end());
    return merge(nullptr);
  }
  const auto last = last_piece();
  if (bytes >= now || last == free_.end()) return;
  const std::size_t gone = region_->give_back_end(std::min(now - bytes, last->second.bytes));
  if (gone == 0) return;
  std::byte* data = last->first;
  Free piece = last->second;
  erase(data, piece.bytes);
  piece.bytes -= gone;
  if (piece.bytes > 0) insert(data, std::move(piece));
  slabs_.back() = slabs_.back().first(now - gone);
}

std::pair<std::byte*, std::vector<Event>> Arena::take(std::size_t bytes,
                                                      const Stream* user,
                                                      std::size_t may_grow) {
  bytes = round_up(bytes, kAlignment);
  std::byte* data = find(bytes, user, may_grow);
  return {data, take_from(data, bytes)};
}

std::pair<std::byte*, std::vector<Event>> Arena::take_fitting(std::size_t bytes,
                                                              const Stream* user) {
  bytes = round_up(bytes, kAlignment);
  std::byte* data = find_fitting(bytes, user);
  if (data == nullptr) {
    merge(user);
    data = find_fitting(bytes, user);
  }
  if (data == nullptr) data = grow(bytes, free_.end());
  return {data, take_from(data, bytes)};
}

void Arena::give(std::byte* data, std::size_t bytes, std::vector<Event> uses) {
  insert(data, {round_up(bytes, kAlignment), std::move(uses), slab_of(data), ++given_});
}

std::size_t Arena::reserved() const {
  std::size_t bytes = 0;
  for (const std::span<std::byte>& slab : slabs_) bytes += slab.size();
  return bytes;
}

void Arena::forget_uses() {
  for (auto& [data, piece] : free_) {
    std::erase_if(piece.uses, [](const Event& use) { return use.stream->reached(use.ticket); });
  }
}

void Arena::merge(const Stream* user) {
  for (auto at = free_.begin(); at != free_.end();) {
    const auto next = std::next(at);
    const bool both = next != free_.end() && adjacent(*at, *next) && is_ready(at->second, user) &&
                      is_ready(next->second, user);
    at = both ? join(at, next) : next;
  }
}

bool Arena::is_ready(const Free& piece, const Stream* user) {
  return std::ranges::all_of(piece.uses, [&](const Event& use) {
    return user == nullptr ? use.stream->reached(use.ticket) : user->knows(use);
  });
}

// Cuts `bytes` off the free piece at `data`; returns its uses.
std::vector<Event> Arena::take_from(std::byte* data, std::size_t bytes) {
  Free found = std::move(free_.at(data));
  erase(data, found.bytes);
  if (found.bytes > bytes) {
    insert(data + bytes, {found.bytes - bytes, found.uses, found.slab, found.given});
  }
  return std::move(found.uses);
}

// True if everything from the piece up to `end` is free.
bool Arena::is_free(FreePieces::const_iterator piece, const std::byte* end) const {
  while (piece->first + piece->second.bytes < end) {
    const auto next = std::next(piece);
    if (next == free_.end() || !adjacent(*piece, *next)) return false;
    piece = next;
  }
  return true;
}

bool Arena::adjacent(const FreePieces::value_type& piece, const FreePieces::value_type& next) {
  return next.first == piece.first + piece.second.bytes && next.second.slab == piece.second.slab;
}

std::byte* Arena::find(std::size_t bytes, const Stream* user, std::size_t may_grow) {
  if (std::byte* ready = find_ready(bytes, user)) return ready;
  merge(user);
  if (std::byte* ready = find_ready(bytes, user)) return ready;
  const auto last = last_piece();
  const bool last_helps = last != free_.end() && is_ready(last->second, user);
  if (bytes - (last_helps ? last->second.bytes : 0) <= may_grow) {
    return grow(bytes, last_helps ? last : free_.end());
  }
  if (std::byte* oldest = find_oldest(bytes)) return oldest;
  return grow(bytes, last);
}

std::byte* Arena::find_ready(std::size_t bytes, const Stream* user) const {
  for (auto at = by_size_.lower_bound({bytes, nullptr}); at != by_size_.end(); ++at) {
    if (is_ready(free_.at(at->second), user)) return at->second;
  }
  return nullptr;
}

// Among the smallest pieces that are large enough: a ready one, else the one given back longest
// ago.
std::byte* Arena::find_fitting(std::size_t bytes, const Stream* user) const {
  const auto first = by_size_.lower_bound({bytes, nullptr});
  if (first == by_size_.end()) return nullptr;
  std::byte* oldest = first->second;
  for (auto at = first; at != by_size_.end() && at->first == first->first; ++at) {
    const Free& piece = free_.at(at->second);
    if (is_ready(piece, user)) return at->second;
    if (piece.given < free_.at(oldest).given) oldest = at->second;
  }
  return oldest;
}

// Joins adjacent pieces that are large enough together: of all such runs, the one given back
// longest ago.
std::byte* Arena::find_oldest(std::size_t bytes) {
  auto best = free_.end();
  std::uint64_t best_given = 0;
  for (auto first = free_.begin(); first != free_.end(); ++first) {
    std::size_t together = 0;
    std::uint64_t given = 0;
    for (auto at = first; at != free_.end(); ++at) {
      if (at != first && !adjacent(*std::prev(at), *at)) break;
      together += at->second.bytes;
      given = std::max(given, at->second.given);
      if (together >= bytes) break;
    }
    if (together >= bytes && (best == free_.end() || given < best_given)) {
      best = first;
      best_given = given;
    }
  }
  if (best == free_.end()) return nullptr;
  return join_up_to(best, bytes);
}

// Joins adjacent pieces from `first` on up to `bytes`; the rest of the last one stays a piece.
std::byte* Arena::join_up_to(Piece first, std::size_t bytes) {
  while (first->second.bytes < bytes) {
    const auto next = std::next(first);
    const std::size_t missing = bytes - first->second.bytes;
    if (next->second.bytes > missing) split(next, missing);
    first = join(first, std::next(first));
  }
  return first->first;
}

// Cuts a piece after `bytes`; returns the piece behind.
Arena::Piece Arena::split(Piece at, std::size_t bytes) {
  std::byte* data = at->first;
  const Free piece = at->second;
  erase(data, piece.bytes);
  insert(data, {bytes, piece.uses, piece.slab, piece.given});
  return insert(data + bytes, {piece.bytes - bytes, piece.uses, piece.slab, piece.given});
}

Arena::Piece Arena::join(Piece at, Piece next) {
  std::byte* data = at->first;
  Free piece = at->second;
  piece.bytes += next->second.bytes;
  piece.given = std::max(piece.given, next->second.given);
  for (const Event& use : next->second.uses) note_use(piece.uses, use);
  erase(next->first, next->second.bytes);
  erase(data, at->second.bytes);
  return insert(data, std::move(piece));
}

// Free piece at the region's end.
Arena::Piece Arena::last_piece() {
  if (slabs_.empty() || !region_->grows_in_place()) return free_.end();
  std::byte* end = slabs_.back().data() + slabs_.back().size();
  const auto behind = free_.lower_bound(end);
  if (behind == free_.begin()) return free_.end();
  const auto last = std::prev(behind);
  return last->first + last->second.bytes == end ? last : free_.end();
}

// Grows the region to a piece of `bytes`, including `last` if the region grows behind it.
std::byte* Arena::grow(std::size_t bytes, Piece last) {
  const std::size_t missing = bytes - (last == free_.end() ? 0 : last->second.bytes);
  const std::span<std::byte> more = region_->grow(missing);
  // Separately taken pieces stay separate, even if they happen to touch: a GPU cannot copy across
  // two pieces of pinned memory.
  const bool behind = region_->grows_in_place() && !slabs_.empty() &&
                      more.data() == slabs_.back().data() + slabs_.back().size();
  if (behind) {
    slabs_.back() = {slabs_.back().data(), slabs_.back().size() + more.size()};
  } else {
    slabs_.push_back(more);
  }
  const auto added = insert(more.data(), {more.size(), {}, slabs_.size() - 1, 0});
  if (last == free_.end()) return added->first;
  if (behind) return join_up_to(last, bytes);
  return grow(bytes, free_.end());
}

std::size_t Arena::slab_of(const std::byte* data) const {
  for (std::size_t i = 0; i < slabs_.size(); ++i) {
    if (data >= slabs_[i].data() && data < slabs_[i].data() + slabs_[i].size()) return i;
  }
  UNREACHABLE("memory that is not of this pool");
}

Arena::Piece Arena::insert(std::byte* data, Free piece) {
  by_size_.emplace(piece.bytes, data);
  return free_.emplace(data, std::move(piece)).first;
}

void Arena::erase(std::byte* data, std::size_t bytes) {
  by_size_.erase({bytes, data});
  free_.erase(data);
}

}  // namespace weft::tensor
