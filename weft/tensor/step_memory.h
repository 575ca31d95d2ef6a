// Buffers of a step as it last ran, and their places for the next run.
//
// Steps of one kind allocate and release alike, except for sizes that depend on data. The first run
// is watched; later runs give every buffer a place that was planned with its successors known. A
// buffer whose size varies has no fixed place: reserving its largest size would take far more than
// a step needs. It lies wherever there is room when it is allocated, but not where a placed buffer
// comes during its life.
//
// A place is advice: if it is not free, the pool finds another. Steps 1, 2, 4, 8 and so on are
// watched again. So is each step after one with a buffer of a new size. If another pool watched the
// step before, its first run here already has places.
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

// Place of a buffer: an offset in the region or, if its size varies, the lowest room beside `kept`.
struct Place {
  std::optional<std::size_t> offset;
  std::span<const Extent> kept{};  // places of other buffers, by offset
  std::int32_t age = 0;            // see kAges
};

// Buffers of a step. Keys: see StepMemory::next_node.
struct WatchedStep {
  std::vector<Lifetime> buffers{};
  std::vector<std::uint64_t> keys{};  // one per buffer
};

// Marks the buffers of `step` as varying that have another size in `other`, or are missing there.
// `other`: the same step with other data.
void note_varying(WatchedStep& step, const WatchedStep& other);

class StepMemory {
 public:
  void begin();
  // Starts the next node. A buffer is identified by its index within its node, because a node
  // without work may allocate fewer.
  void next_node();

  // Notes the next buffer (bytes 0: too small to be placed) and returns its place; nullopt: it has
  // none.
  std::optional<Place> take(std::size_t bytes, const Stream* user);
  // Notes that a buffer did not get its place, or has none.
  void missed() { ++missed_; }
  // Notes that buffer `number` of this step, of `bytes`, is given back.
  void give(std::int64_t number, std::size_t bytes, std::span<const Event> uses);
  std::int64_t taken() const { return number_; }

  // Plans the next step if a plan is due, around the extents `occupied` by others and below `most`
  // if possible. `size`: bytes of the region now. Returns the end of the highest place; nullopt: no
  // new plan.
  std::optional<std::size_t> plan(std::span<const Extent> occupied,
                                  std::size_t size,
                                  std::size_t most);
  // Latest step, if it was watched.
  const WatchedStep& watched() const { return seen_; }
  // Variant of plan() before the first run, for a step that was watched elsewhere.
  void expect(const WatchedStep& step, std::span<const Extent> occupied, std::size_t most);
  // End of the highest fixed place; 0: no plan. Buffers that vary take memory as they come.
  std::size_t fixed_top() const { return fixed_top_; }

 private:
  void stop_watching();
  bool is_due(bool too_large) const;
  int user_of(const Stream* user);
  void look_what_is_known(int user, const Stream* stream);

  WatchedStep seen_;                      // step under watch
  std::map<const Stream*, int> users_;    // stream numbers in Lifetime
  std::vector<std::vector<Event>> uses_;  // last uses of each released buffer
  std::vector<std::vector<std::size_t>>
      unknown_;  // by user: released buffers not known to be complete
  std::int32_t time_ = 0;
  bool watches_ = false;

  struct Planned {
    std::size_t bytes = 0;
    bool varies = false;  // size differed in another step
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
  std::uint64_t key_ = 0;    // key of the next buffer
  std::int64_t number_ = 0;  // buffers so far in this step
  std::int64_t missed_ = 0;
  std::size_t alive_ = 0;       // bytes alive now
  std::size_t most_alive_ = 0;  // peak of this step
  std::size_t most_ever_ = 0;   // peak of any step
  std::size_t age_ = 0;         // index into kAges of the plan
  bool outdated_ = false;       // this step contradicted the plan
  std::int64_t steps_ = 0;
};

}  // namespace weft::tensor
