// Free memory of one region, by best fit with splitting; deterministic in its calls. Every free
// piece carries its last uses: whoever gets it waits for those that are not over.
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

// Keeps the latest position for each stream.
void note_use(std::vector<Event>& uses, const Event& use);

class Arena {
 public:
  Arena(Device& device, Memory memory) : region_(device.make_region(memory)) {}

  // Memory for `user`, or for the host where that is null. Where none is ready for it, the region
  // grows by at most `may_grow`; only then is memory given that it must wait for.
  std::pair<std::byte*, std::vector<Event>> take(std::size_t bytes,
                                                 const Stream* user,
                                                 std::size_t may_grow);
  // The same of memory that is slow to get: of what is free the piece that fits best, whoever must
  // wait for it, so that the region grows only where nothing fits.
  std::pair<std::byte*, std::vector<Event>> take_fitting(std::size_t bytes, const Stream* user);
  // The memory at that place, where it is free.
  std::optional<std::vector<Event>> take_at(std::byte* data, std::size_t bytes);
  // The lowest memory beside what is `kept`, sorted: such as is ready for `user`, for which the
  // region grows by at most `may_grow`; else such as was given back before so many others, else
  // such as is free, else the region grows. None where it does not grow in place. Not for memory in
  // pieces.
  std::optional<std::pair<std::byte*, std::vector<Event>>> take_lowest(std::size_t bytes,
                                                                       const Stream* user,
                                                                       std::span<const Extent> kept,
                                                                       std::uint64_t others,
                                                                       std::size_t may_grow);
  void give(std::byte* data, std::size_t bytes, std::vector<Event> uses);

  // What was taken from the device.
  std::size_t reserved() const;
  // Whether what was taken lies in one piece.
  bool is_whole() const { return slabs_.size() <= 1; }
  // Where the region begins, if there is one piece; else null.
  std::byte* begin() const { return slabs_.size() == 1 ? slabs_.front().data() : nullptr; }
  // What of it is not free.
  std::vector<Extent> occupied() const;
  // Gives back to the device what is free above so many bytes, or takes what is missing. Nothing is
  // under way.
  void resize(std::size_t bytes);

  // Forgets uses that are over; for when all of them are.
  void forget_uses();
  // Merges neighbours that are both ready for `user`.
  void merge(const Stream* user);

 private:
  struct Free {
    std::size_t bytes;
    std::vector<Event> uses;
    std::size_t slab;
    std::uint64_t given;  // when: a running number
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
  std::vector<std::span<std::byte>> slabs_;  // parts of the region that lie apart
  FreePieces free_;
  std::set<std::pair<std::size_t, std::byte*>> by_size_;
  std::uint64_t given_ = 0;
};

}  // namespace weft::tensor
