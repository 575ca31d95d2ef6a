// Rows that travel: one per chosen expert, or one per group of experts chosen from.
//
// A stable counting sort. The slots are cut into pieces of neighbours, one warp each. A piece
// counts its slots by key (an expert, or a group). For each key the counts are summed over the
// pieces before. A single block decides where the rows of each key start, or that they do not fit.
// Then each piece gives its slots their rows in order. The order in which pieces run changes
// nothing.
#include <algorithm>

#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/block_scan.h"
#include "weft/kernels/cuda/device/operations.h"

namespace weft::kernels::cuda {
namespace sort_rows_kernels {
namespace {

constexpr int kThreads = 256, kMostThreads = 1024;
constexpr std::int64_t kMostKeys = 4096;     // two counters per key fit into shared memory
constexpr std::int64_t kSlotsOfPiece = 128;  // at least, for enough pieces for all multiprocessors
constexpr std::int64_t kManyPieces = 1024;   // more take longer to sum than they gain
constexpr std::int64_t kMostCounters = 4 << 20;  // over all pieces: 16 MiB
constexpr std::int32_t kNoKey = -1;              // a slot that gets no row
constexpr unsigned kNoSlot = 0xffffffffu;

struct Choices {
  std::int64_t tokens = 0, k = 0;
  const std::int32_t* expert = nullptr;  // expert of each slot

  __host__ __device__ std::int64_t slots() const { return tokens * k; }
};

Choices choices_of(Stream& stream, const Tensor& experts_Tk) {
  return {experts_Tk.dim(0), experts_Tk.dim(1), data<std::int32_t>(stream, experts_Tk)};
}

// Findings of the pieces, and the decision.
struct Verdict {
  unsigned wrong_slot;    // first slot with a choice out of order, or kNoSlot
  unsigned crowded_slot;  // first slot that is a row too many for its token
  int rows_fit;           // rows are written only if 1
};

// Counters per key and piece, and sums of them, in the stream's scratch memory.
struct Counters {
  std::int64_t keys = 0, pieces = 0, slots_of_piece = 0;
  Verdict* verdict = nullptr;
  std::int32_t* totals = nullptr;  // (keys)
  std::int32_t* starts = nullptr;  // (keys): first row
  std::int32_t* counts = nullptr;  // (keys, pieces): of the piece; then of the pieces before it

  __device__ std::int32_t& count(std::int64_t key, std::int64_t piece) const {
    return counts[key * pieces + piece];
  }
};

Counters counters_of(Stream& stream, std::int64_t slots, std::int64_t keys) {
  CHECK(keys <= kMostKeys, "rows sorted by {} keys", keys);
  Counters c{.keys = keys, .slots_of_piece = kSlotsOfPiece};
  const auto pieces = [&] { return (slots + c.slots_of_piece - 1) / c.slots_of_piece; };
  while (pieces() > kManyPieces || pieces() * keys > kMostCounters) c.slots_of_piece *= 2;
  c.pieces = pieces();
  constexpr std::int64_t kVerdict = sizeof(Verdict) / sizeof(std::int32_t);
  auto* words = scratch<std::int32_t>(stream, kVerdict + 2 * keys + keys * c.pieces);
  c.verdict = reinterpret_cast<Verdict*>(words);
  c.totals = words + kVerdict;
  c.starts = c.totals + keys;
  c.counts = c.starts + keys;
  return c;
}

// Every choice is a row. Key of a slot: its expert, counted from `first`.
struct ByExpert {
  Choices choices;
  std::int64_t first, experts, room;
  std::int64_t room_each;                     // rows of an expert if padded, else 0
  std::int32_t *row_of, *slot_of, *token_of;  // by slot; by row
  std::int64_t* counts;                       // (experts)

  __device__ std::int32_t key_of(std::int64_t slot, Verdict*) const {
    const std::int32_t expert = choices.expert[slot];
    const std::int64_t e = expert - first;
    return expert >= 0 && e >= 0 && e < experts ? std::int32_t(e) : kNoKey;
  }
  __device__ void write(std::int64_t slot, std::int32_t, std::int32_t row) const {
    row_of[slot] = row;
    slot_of[row] = std::int32_t(slot);
    token_of[row] = std::int32_t(unsigned(slot) / unsigned(choices.k));
  }
};

// Choice of a token, beside its earlier choices.
struct Choice {
  std::int32_t expert, group;
  std::int32_t last;   // group of the choice before, or -1
  std::int32_t place;  // number of groups before
  bool wrong;          // no group, or a group before the last one

  __device__ bool taken() const { return expert >= 0; }
  __device__ bool begins_group() const { return taken() && !wrong && group != last; }
};

// Groups in 32 bits: a division takes a fraction of the time.
struct Groups {
  Choices choices;
  std::int32_t first, width, count;

  Groups(const Choices& of, const ExpertGroups& groups, std::int64_t number)
      : choices(of),
        first(std::int32_t(groups.first)),
        width(std::int32_t(groups.width)),
        count(std::int32_t(number)) {}

  __device__ std::int32_t group_of(std::int32_t expert) const { return (expert - first) / width; }
  // First slot of the token of this slot.
  __device__ unsigned begin_of(std::int64_t slot) const {
    const auto k = unsigned(choices.k);
    return unsigned(slot) / k * k;
  }
  // Choice of a slot. All choices of the token before it must be right.
  __device__ Choice choice(std::int64_t slot) const {
    Choice c{.expert = choices.expert[slot], .group = -1, .last = -1, .place = 0, .wrong = false};
    for (std::int64_t i = begin_of(slot); i < slot; ++i) {
      const std::int32_t before = choices.expert[i];
      const std::int32_t group = before < 0 ? c.last : group_of(before);
      c.place += group != c.last ? 1 : 0;
      c.last = group;
    }
    if (!c.taken()) return c;
    c.group = group_of(c.expert);
    c.wrong = c.expert < first || c.group >= count || c.group < c.last;
    return c;
  }
  __device__ void raise_wrong(std::int64_t slot, const Faults& faults) const {
    const Choice c = choice(slot);
    faults.raise(FaultCode::ChoiceOutOfOrder,
                 slot / choices.k,
                 c.expert,
                 c.last,
                 count,
                 width,
                 first);
  }
};

// Every group that a token chose from is a row. Key of a slot: its group, at the first choice from
// it.
struct ByGroup {
  Groups groups;
  std::int64_t room;  // rows
  std::int64_t most;  // rows a token may have
  std::int32_t *row_of, *token_of, *choice_of;
  std::int64_t* counts;

  __device__ std::int32_t key_of(std::int64_t slot, Verdict* verdict) const {
    const Choice c = groups.choice(slot);
    if (c.wrong) atomicMin(&verdict->wrong_slot, unsigned(slot));
    if (!c.begins_group()) return kNoKey;
    if (c.place >= most) atomicMin(&verdict->crowded_slot, unsigned(slot));
    return std::int32_t(c.group);
  }
  // The choices of a group follow each other.
  __device__ void write(std::int64_t slot, std::int32_t group, std::int32_t row) const {
    const Choices& choices = groups.choices;
    const std::int64_t k = choices.k, begin = groups.begin_of(slot);
    const unsigned token = unsigned(begin) / unsigned(k);
    row_of[token * most + groups.choice(slot).place] = row;
    token_of[row] = std::int32_t(token);
    for (std::int64_t i = slot; i < begin + k; ++i) {
      const std::int32_t expert = choices.expert[i];
      const bool own = expert >= 0 && groups.group_of(expert) == group;
      if (own) choice_of[row * k + (i - begin)] = expert;
    }
  }
};

struct Integers {
  std::int32_t* data = nullptr;
  std::int64_t count = 0;
};

// Sets the outputs to -1, and the verdict to nothing found.
__global__ void begin(Verdict* verdict, Integers a, Integers b, Integers c) {
  if (first_index() == 0) *verdict = {kNoSlot, kNoSlot, 0};
  for (std::int64_t i = first_index(); i < a.count; i += index_step()) a.data[i] = -1;
  for (std::int64_t i = first_index(); i < b.count; i += index_step()) b.data[i] = -1;
  for (std::int64_t i = first_index(); i < c.count; i += index_step()) c.data[i] = -1;
}

// Runs with one warp per block, and one block per piece.
template <typename Sorting>
__global__ void count_pieces(Sorting sorting, std::int64_t slots, Counters counters) {
  extern __shared__ std::int32_t counts[];
  for (std::int64_t key = threadIdx.x; key < counters.keys; key += kWarp) counts[key] = 0;
  __syncwarp();
  const std::int64_t piece = blockIdx.x, first = piece * counters.slots_of_piece;
  const std::int64_t end = min(first + counters.slots_of_piece, slots);
  for (std::int64_t slot = first + threadIdx.x; slot < end; slot += kWarp) {
    const std::int32_t key = sorting.key_of(slot, counters.verdict);
    if (key != kNoKey) atomicAdd(&counts[key], 1);
  }
  __syncwarp();
  for (std::int64_t key = threadIdx.x; key < counters.keys; key += kWarp) {
    counters.count(key, piece) = counts[key];
  }
}

// Runs with one block per key.
__global__ void sum_pieces(Counters counters) {
  const std::int64_t key = blockIdx.x;
  std::int32_t before = 0;
  for (std::int64_t first = 0; first < counters.pieces; first += blockDim.x) {
    const std::int64_t piece = first + threadIdx.x;
    const bool has = piece < counters.pieces;
    const Scanned<std::int32_t> scanned = block_scan(has ? counters.count(key, piece) : 0);
    if (has) counters.count(key, piece) = before + scanned.before;
    before += scanned.total;
  }
  if (threadIdx.x == 0) counters.totals[key] = before;
}

// Start of the rows of each key, if they follow each other. Returns the number of rows. One block
// calls it.
__device__ std::int64_t pack_keys(const Counters& counters) {
  std::int64_t before = 0;
  for (std::int64_t first = 0; first < counters.keys; first += blockDim.x) {
    const std::int64_t key = first + threadIdx.x;
    const bool has = key < counters.keys;
    const std::int64_t total = has ? counters.totals[key] : 0;
    const Scanned<std::int64_t> scanned = block_scan(total);
    if (has) counters.starts[key] = std::int32_t(before + scanned.before);
    before += scanned.total;
  }
  __syncthreads();
  return before;
}

__device__ void place_keys(const ByExpert& s, const Counters& counters, const Faults& faults) {
  __shared__ int first_beyond;
  if (threadIdx.x == 0) first_beyond = int(s.experts);
  pack_keys(counters);
  const auto room_of = [&](std::int64_t e) {
    return s.room_each > 0 ? s.room_each : s.room - counters.starts[e];
  };
  for (std::int64_t e = threadIdx.x; e < s.experts; e += blockDim.x) {
    s.counts[e] = counters.totals[e];
    if (counters.totals[e] > room_of(e)) atomicMin(&first_beyond, int(e));
    if (s.room_each > 0) counters.starts[e] = std::int32_t(e * s.room_each);
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  const std::int64_t e = first_beyond;
  counters.verdict->rows_fit = e == s.experts;
  if (e == s.experts) return;
  faults.raise(FaultCode::RowsOfExpertBeyondRoom, counters.totals[e], s.first + e, room_of(e));
}

__device__ void place_keys(const ByGroup& s, const Counters& counters, const Faults& faults) {
  const std::int64_t rows = pack_keys(counters);
  for (std::int64_t g = threadIdx.x; g < counters.keys; g += blockDim.x) {
    s.counts[g] = counters.totals[g];
  }
  if (threadIdx.x != 0) return;
  Verdict& verdict = *counters.verdict;
  if (verdict.wrong_slot != kNoSlot) return s.groups.raise_wrong(verdict.wrong_slot, faults);
  if (rows > s.room) return faults.raise(FaultCode::RowsBeyondRoom, rows, s.room);
  if (verdict.crowded_slot != kNoSlot) {
    const std::int64_t token = verdict.crowded_slot / s.groups.choices.k;
    return faults.raise(FaultCode::TooManyRowsOfToken, token, s.most);
  }
  verdict.rows_fit = 1;
}

// Runs in one block.
template <typename Sorting>
__global__ void __launch_bounds__(kMostThreads)
    place(Sorting sorting, Counters counters, Faults faults) {
  place_keys(sorting, counters, faults);
}

// Runs with one warp per block, and one block per piece. Slots of one key find each other by their
// lanes.
template <typename Sorting>
__global__ void rank_pieces(Sorting sorting, std::int64_t slots, Counters counters) {
  extern __shared__ std::int32_t next[];  // (keys): next row
  if (!counters.verdict->rows_fit) return;
  const std::int64_t piece = blockIdx.x, begin = piece * counters.slots_of_piece;
  const std::int64_t end = min(begin + counters.slots_of_piece, slots);
  for (std::int64_t key = threadIdx.x; key < counters.keys; key += kWarp) {
    next[key] = counters.starts[key] + counters.count(key, piece);
  }
  __syncwarp();
  const unsigned lanes_before = (1u << threadIdx.x) - 1;
  for (std::int64_t first = begin; first < end; first += kWarp) {
    const std::int64_t slot = first + threadIdx.x;
    const std::int32_t key = slot < end ? sorting.key_of(slot, counters.verdict) : kNoKey;
    const unsigned same = __match_any_sync(kAllLanes, key);
    const int rank = __popc(same & lanes_before);
    const std::int32_t row = key == kNoKey ? 0 : next[key] + rank;
    __syncwarp();
    if (key != kNoKey && rank == 0) next[key] += __popc(same);
    __syncwarp();
    if (key != kNoKey) sorting.write(slot, key, row);
  }
}

template <typename Sorting>
void launch_sort(cudaStream_t handle,
                 const Sorting& sorting,
                 std::int64_t slots,
                 const Counters& counters,
                 const Faults& faults) {
  const auto pieces = static_cast<unsigned>(counters.pieces);
  const auto keys = static_cast<unsigned>(counters.keys);
  const std::size_t shared = keys * sizeof(std::int32_t);
  if (pieces > 0) count_pieces<<<pieces, kWarp, shared, handle>>>(sorting, slots, counters);
  if (keys > 0) sum_pieces<<<keys, kThreads, 0, handle>>>(counters);
  place<<<1, kMostThreads, 0, handle>>>(sorting, counters, faults);
  if (pieces > 0) rank_pieces<<<pieces, kWarp, shared, handle>>>(sorting, slots, counters);
}

void launch_begin(cudaStream_t handle, Verdict* verdict, Integers a, Integers b, Integers c) {
  const std::int64_t most = std::max({std::int64_t{1}, a.count, b.count, c.count});
  begin<<<blocks_for(most, kThreads), kThreads, 0, handle>>>(verdict, a, b, c);
}

// Counts of groups in the stream's scratch memory: rows, then choices; and the verdict.
struct GroupCounts {
  std::int32_t *rows, *chosen;
  Verdict* verdict;
};

__global__ void begin_counts(GroupCounts to, std::int64_t groups) {
  if (first_index() == 0) *to.verdict = {kNoSlot, kNoSlot, 0};
  for (std::int64_t g = first_index(); g < groups; g += index_step()) to.rows[g] = to.chosen[g] = 0;
}

// Sums within a block first: all tokens may have chosen from one group.
__global__ void count_groups(Groups groups, GroupCounts to) {
  extern __shared__ std::int32_t counts[];
  std::int32_t *rows = counts, *chosen = counts + groups.count;
  for (std::int64_t i = threadIdx.x; i < 2 * groups.count; i += blockDim.x) counts[i] = 0;
  __syncthreads();
  for (std::int64_t s = first_index(); s < groups.choices.slots(); s += index_step()) {
    const Choice c = groups.choice(s);
    if (c.wrong) atomicMin(&to.verdict->wrong_slot, unsigned(s));
    if (!c.taken() || c.wrong) continue;
    atomicAdd(&chosen[c.group], 1);
    if (c.begins_group()) atomicAdd(&rows[c.group], 1);
  }
  __syncthreads();
  for (std::int64_t g = threadIdx.x; g < groups.count; g += blockDim.x) {
    if (rows[g] > 0) atomicAdd(&to.rows[g], rows[g]);
    if (chosen[g] > 0) atomicAdd(&to.chosen[g], chosen[g]);
  }
}

__global__ void end_counts(Groups groups,
                           GroupCounts from,
                           std::int64_t* rows,
                           std::int64_t* chosen,
                           Faults faults) {
  for (std::int64_t g = first_index(); g < groups.count; g += index_step()) {
    rows[g] = from.rows[g];
    chosen[g] = from.chosen[g];
  }
  const unsigned wrong = from.verdict->wrong_slot;
  if (first_index() == 0 && wrong != kNoSlot) groups.raise_wrong(wrong, faults);
}

}  // namespace
}  // namespace sort_rows_kernels

void sort_by_expert(Stream& stream,
                    Tensor row,
                    Tensor slot,
                    Tensor token,
                    Tensor counts,
                    Tensor experts,
                    std::int64_t first,
                    Room room) {
  const std::int64_t rows = slot.dim(0), e = counts.dim(0);
  const sort_rows_kernels::ByExpert sorting{
      .choices = sort_rows_kernels::choices_of(stream, experts),
      .first = first,
      .experts = e,
      .room = rows,
      .room_each = room == Room::Padded ? rows / e : 0,
      .row_of = data<std::int32_t>(stream, row),
      .slot_of = data<std::int32_t>(stream, slot),
      .token_of = data<std::int32_t>(stream, token),
      .counts = data<std::int64_t>(stream, counts)};
  const std::int64_t slots = sorting.choices.slots();
  const sort_rows_kernels::Counters counters = sort_rows_kernels::counters_of(stream, slots, e);
  const Faults faults(stream);
  enqueue_all(stream, "sort_by_expert", WorkClass::Memory, [=](cudaStream_t handle) {
    sort_rows_kernels::launch_begin(handle,
                                    counters.verdict,
                                    {sorting.row_of, slots},
                                    {sorting.slot_of, rows},
                                    {sorting.token_of, rows});
    sort_rows_kernels::launch_sort(handle, sorting, slots, counters, faults);
  });
}

void sort_by_group(Stream& stream,
                   Tensor row,
                   Tensor token,
                   Tensor choice,
                   Tensor counts,
                   Tensor experts,
                   const ExpertGroups& groups) {
  const std::int64_t count = counts.dim(0), room = token.dim(0);
  const sort_rows_kernels::ByGroup sorting{
      .groups =
          sort_rows_kernels::Groups(sort_rows_kernels::choices_of(stream, experts), groups, count),
      .room = room,
      .most = row.dim(1),
      .row_of = data<std::int32_t>(stream, row),
      .token_of = data<std::int32_t>(stream, token),
      .choice_of = data<std::int32_t>(stream, choice),
      .counts = data<std::int64_t>(stream, counts)};
  const std::int64_t slots = sorting.groups.choices.slots();
  const std::int64_t rows_of_tokens = row.elements(), choices = choice.elements();
  const sort_rows_kernels::Counters counters = sort_rows_kernels::counters_of(stream, slots, count);
  const Faults faults(stream);
  enqueue_all(stream, "sort_by_group", WorkClass::Memory, [=](cudaStream_t handle) {
    sort_rows_kernels::launch_begin(handle,
                                    counters.verdict,
                                    {sorting.row_of, rows_of_tokens},
                                    {sorting.token_of, room},
                                    {sorting.choice_of, choices});
    sort_rows_kernels::launch_sort(handle, sorting, slots, counters, faults);
  });
}

void count_by_group(Stream& stream,
                    Tensor rows,
                    Tensor chosen,
                    Tensor experts,
                    const ExpertGroups& groups) {
  const std::int64_t count = rows.dim(0);
  const sort_rows_kernels::Groups of(sort_rows_kernels::choices_of(stream, experts), groups, count);
  std::int64_t* rows_of = data<std::int64_t>(stream, rows);
  std::int64_t* chosen_of = data<std::int64_t>(stream, chosen);
  const sort_rows_kernels::Counters counters = sort_rows_kernels::counters_of(stream, 0, count);
  const sort_rows_kernels::GroupCounts counted{counters.totals, counters.starts, counters.verdict};
  const Faults faults(stream);
  enqueue_all(stream, "count_by_group", WorkClass::Memory, [=](cudaStream_t handle) {
    const unsigned blocks =
        blocks_for(std::max<std::int64_t>(count, 1), sort_rows_kernels::kThreads);
    sort_rows_kernels::begin_counts<<<blocks, sort_rows_kernels::kThreads, 0, handle>>>(counted,
                                                                                        count);
    if (const unsigned of_slots = blocks_for(of.choices.slots(), sort_rows_kernels::kThreads);
        of_slots > 0) {
      const std::size_t shared = 2 * std::size_t(count) * sizeof(std::int32_t);
      sort_rows_kernels::count_groups<<<of_slots, sort_rows_kernels::kThreads, shared, handle>>>(
          of,
          counted);
    }
    sort_rows_kernels::end_counts<<<blocks, sort_rows_kernels::kThreads, 0, handle>>>(of,
                                                                                      counted,
                                                                                      rows_of,
                                                                                      chosen_of,
                                                                                      faults);
  });
}

}  // namespace weft::kernels::cuda
