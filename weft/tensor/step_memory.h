// What a step's buffers were when it last ran, and where they shall lie when it runs again.
//
// Steps of one kind take and give back alike, but for sizes that depend on the data. So the first
// run is watched, and from then on every buffer has a place that was planned with the knowledge of
// what comes after it. A buffer whose size varies has none: room for all that it may need would be
// far more than what a step needs at one time. It lies where there is room when it is taken, but
// not where something with a place comes while it is there. A place is advice: where it is not
// free, the pool finds another one. The step is watched and planned again when it ran two, four,
// eight times and so on, and after one that had a buffer of a new size. Where the step was watched
// in another pool before, already its first run here has places.
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

// Where a buffer shall lie: at an offset in the region or, where its size varies, as low as it goes
// beside what is kept for others.
struct Place {
  std::optional<std::size_t> offset;
  std::span<const Extent> kept{};  // by offset
  std::int32_t age = 0;            // see kAges
};

// A step's buffers. Keys: see StepMemory::next_node.
struct WatchedStep {
  std::vector<Lifetime> buffers{};
  std::vector<std::uint64_t> keys{};  // of each
};

// Those buffers of `step` vary that had another size in `other`, or none: the same step with other
// data.
void note_varying(WatchedStep& step, const WatchedStep& other);

class StepMemory {
 public:
  void begin();
  // What is taken from now on belongs to the next node. Buffers are known again by their place
  // among those of their node: a node may take fewer where it has nothing to do.
  void next_node();

  // The next buffer of the step; zero bytes where it is too small to be placed. Its place, if it
  // has one.
  std::optional<Place> take(std::size_t bytes, const Stream* user);
  // It did not get its place, or has none.
  void missed() { ++missed_; }
  // The buffer that was taken as the `number`th, with so many bytes, is given back, in the same
  // step.
  void give(std::int64_t number, std::size_t bytes, std::span<const Event> uses);
  std::int64_t taken() const { return number_; }

  // After a step: plans the next one where this is due, around what is `occupied` by others and as
  // far as it can below `most`; the region has `size` bytes now. The end of the highest place.
  std::optional<std::size_t> plan(std::span<const Extent> occupied,
                                  std::size_t size,
                                  std::size_t most);
  // The step that just ran, where it was watched.
  const WatchedStep& watched() const { return seen_; }
  // Before its first run: as plan(), for a step that was watched elsewhere.
  void expect(const WatchedStep& step, std::span<const Extent> occupied, std::size_t most);
  // The end of the highest place at an offset: what varies takes memory as it comes. 0 without a
  // plan.
  std::size_t fixed_top() const { return fixed_top_; }

 private:
  void stop_watching();
  bool is_due(bool too_large) const;
  int user_of(const Stream* user);
  void look_what_is_known(int user, const Stream* stream);

  WatchedStep seen_;                      // the step that is watched
  std::map<const Stream*, int> users_;    // by their numbers in Lifetime
  std::vector<std::vector<Event>> uses_;  // the last ones of each, once it is given back
  std::vector<std::vector<std::size_t>>
      unknown_;  // by user: buffers given back, not known to be over
  std::int32_t time_ = 0;
  bool watches_ = false;

  struct Planned {
    std::size_t bytes = 0;
    bool varies = false;  // had other bytes at another time
    std::size_t offset = 0;
    std::vector<Extent> kept{};  // see Packing
  };
  WatchedStep step_to_plan() const;
  std::size_t most_for_this_step(std::size_t most) const;
  std::optional<std::size_t> make_plan(const WatchedStep& step,
                                       std::span<const Extent> occupied,
                                       std::size_t most);

  std::unordered_map<std::uint64_t, Planned> plan_;  // by key
  std::size_t fixed_top_ = 0;
  std::uint64_t key_ = 0;    // of the buffer that comes next
  std::int64_t number_ = 0;  // of buffers in this step
  std::int64_t missed_ = 0;
  std::size_t alive_ = 0;       // bytes, now
  std::size_t most_alive_ = 0;  // in this step
  std::size_t most_ever_ = 0;   // in any
  std::size_t age_ = 0;         // of kAges: that of the plan
  bool outdated_ = false;       // the plan, by what this step showed
  std::int64_t steps_ = 0;
};

}  // namespace weft::tensor
