// Free list of one region: best fit with splitting, deterministic in its sequence of calls. Every
// free piece carries its last uses; its next owner waits for those still in flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "weft/tensor/device.h"
#include "weft/tensor/packing.h"
#include "weft/tensor/stream.h"

namespace weft::tensor {

// Adds a use; keeps the latest position of each stream.
void note_use(std::vector<Event>& uses, const Event& use);

class Arena {
 public:
  Arena(Device& device, Memory memory) : region_(device.make_region(memory)) {}

  // Takes memory for `user` (nullptr: the host). Order of preference: a free piece that `user` need
  // not wait for; growing the region by at most `may_grow`; a free piece that `user` must wait for.
  std::pair<std::byte*, std::vector<Event>> take(std::size_t bytes,
                                                 const Stream* user,
                                                 std::size_t may_grow);
  // Takes memory that is slow to get: the best-fitting free piece, even if `user` must wait for it.
  // The region grows only if no piece fits.
  std::pair<std::byte*, std::vector<Event>> take_fitting(std::size_t bytes, const Stream* user);
  // Takes the memory at `data`; nullopt: it is not free.
  std::optional<std::vector<Event>> take_at(std::byte* data, std::size_t bytes);
  // Takes the lowest place beside the extents `kept`, which are sorted. Order of preference: places
  // ready for `user`, with the region growing by at most `may_grow`; places given back before
  // `others` later ones; any free place; growing the region. nullopt: the region cannot grow in
  // place. Only for regions of one piece.
  std::optional<std::pair<std::byte*, std::vector<Event>>> take_lowest(std::size_t bytes,
                                                                       const Stream* user,
                                                                       std::span<const Extent> kept,
                                                                       std::uint64_t others,
                                                                       std::size_t may_grow);
  void give(std::byte* data, std::size_t bytes, std::vector<Event> uses);

  // Bytes taken from the device.
  std::size_t reserved() const;
  // True if the region is at most one piece.
  bool is_whole() const { return slabs_.size() <= 1; }
  // Start of the region if it is one piece, else nullptr.
  std::byte* begin() const { return slabs_.size() == 1 ? slabs_.front().data() : nullptr; }
  // Extents of the region that are in use.
  std::vector<Extent> occupied() const;
  // Shrinks the region to `bytes` as far as its end is free, or grows it to them. All streams are
  // idle.
  void resize(std::size_t bytes);

  // Forgets uses that are complete; called when all of them are.
  void forget_uses();
  // Merges adjacent pieces that are both ready for `user`.
  void merge(const Stream* user);

 private:
  struct Free {
    std::size_t bytes;
    std::vector<Event> uses;
    std::size_t slab;
    std::uint64_t given;  // serial number of the give-back
  };
  using FreePieces = std::map<std::byte*, Free>;
  using Piece = FreePieces::iterator;

  static bool is_ready(const Free& piece, const Stream* user);
  static bool adjacent(const FreePieces::value_type& piece, const FreePieces::value_type& next);
  bool is_free(FreePieces::const_iterator piece, const std::byte* end) const;

  std::byte* find(std::size_t bytes, const Stream* user, std::size_t may_grow);
  std::byte* find_ready(std::size_t bytes, const Stream* user) const;
  std::byte* find_fitting(std::size_t bytes, const Stream* user) const;
  std::byte* find_oldest(std::size_t bytes);
  std::size_t lowest(std::size_t bytes,
                     const Stream* user,
                     std::span<const Extent> kept,
                     std::uint64_t others) const;
  Piece last_piece();
  std::byte* grow(std::size_t bytes, Piece last);
  std::size_t slab_of(const std::byte* data) const;

  std::vector<Event> take_from(std::byte* data, std::size_t bytes);
  std::byte* join_up_to(Piece first, std::size_t bytes);
  Piece split(Piece at, std::size_t bytes);
  Piece join(Piece at, Piece next);
  Piece insert(std::byte* data, Free piece);
  void erase(std::byte* data, std::size_t bytes);

  const std::unique_ptr<Region> region_;
  std::vector<std::span<std::byte>> slabs_;  // separate parts of the region
  FreePieces free_;
  std::set<std::pair<std::size_t, std::byte*>> by_size_;
  std::uint64_t given_ = 0;
};

}  // namespace weft::tensor
