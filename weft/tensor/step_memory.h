// What a step's buffers were when it last ran, and where they shall lie when it runs again.
//
// Steps of one kind take and give back alike, but for sizes that depend on the data. So the first
// run is watched, and from then on every buffer has a place that was planned with the knowledge of
// what comes after it. A place is advice: where it is not free, or the buffer has become too large,
// the pool finds another one, and after a while the step is planned again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "weft/tensor/packing.h"
#include "weft/tensor/stream.h"

namespace weft::tensor {

class StepMemory {
 public:
  void begin();
  // What is taken from now on belongs to the next node. Buffers are known again by their place
  // among those of their node: a node may take fewer where it has nothing to do.
  void next_node();

  // The next buffer of the step; zero bytes where it is too small to be placed. Its place, if it
  // has one: an offset in the region.
  std::optional<std::size_t> take(std::size_t bytes, const Stream* user);
  // It did not get its place, or has none.
  void missed() { ++missed_; }
  // The buffer that was taken as the `number`th is given back, in the same step.
  void give(std::int64_t number, std::span<const Event> uses);
  std::int64_t taken() const { return number_; }

  // After a step: plans the next one where this is due, around what is `occupied` by others and as
  // far as it can below `most`. The end of the highest place.
  std::optional<std::size_t> plan(std::span<const Extent> occupied, std::size_t most);

 private:
  void stop_watching();
  bool is_due() const;
  int user_of(const Stream* user);
  void look_what_is_known(int user, const Stream* stream);
  std::size_t room_for(std::size_t buffer, std::size_t spare_share) const;

  std::vector<Lifetime> seen_;          // of the step that is watched
  std::map<const Stream*, int> users_;  // by their numbers in Lifetime
  std::vector<std::uint64_t> keys_;
  std::vector<std::vector<Event>> uses_;  // the last ones of each, once it is given back
  std::vector<std::vector<std::size_t>>
      unknown_;  // by user: buffers given back, not known to be over
  std::int32_t time_ = 0;
  bool watches_ = false;

  struct Planned {
    std::size_t seen = 0;  // the most bytes it had
    std::size_t offset = 0;
  };
  std::unordered_map<std::uint64_t, Planned> plan_;  // by key
  std::uint64_t key_ = 0;                            // of the buffer that comes next
  std::int64_t number_ = 0;                          // of buffers in this step
  std::int64_t missed_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace weft::tensor
