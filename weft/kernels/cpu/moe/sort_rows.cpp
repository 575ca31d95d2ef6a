// Rows that travel: one per chosen expert, or one per group of experts chosen from. Stable counting
// sorts read the slots once for the counts and once for the rows. A sort is one task; tens of
// thousands of slots take well under a millisecond.
#include <optional>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

namespace {

struct Choices {
  std::int64_t tokens = 0, k = 0;
  const std::int32_t* expert = nullptr;  // expert of each slot

  std::int64_t slots() const { return tokens * k; }
};

Choices choices_of(Stream& stream, const Tensor& experts_Tk) {
  return {experts_Tk.dim(0), experts_Tk.dim(1), data<std::int32_t>(stream, experts_Tk)};
}

struct ByExpert {
  Choices choices;
  std::int64_t first, experts, room;
  std::int64_t room_each;                     // padded: rows of room per expert; else 0
  std::int32_t *row_of, *slot_of, *token_of;  // row of a slot; slot and token of a row
  std::int64_t* counts;                       // rows per expert

  // Expert of a slot, counted from `first`; -1: none of these.
  std::int64_t expert_of(std::int64_t slot) const {
    const std::int64_t e = choices.expert[slot] - first;
    return choices.expert[slot] >= 0 && e >= 0 && e < experts ? e : -1;
  }
};

// First row of each expert; nullopt: the rows do not fit.
std::optional<std::vector<std::int64_t>> starts_of(const ByExpert& s, const Faults& faults) {
  std::vector<std::int64_t> starts;
  std::int64_t row = 0;
  for (std::int64_t e = 0; e < s.experts; ++e) {
    starts.push_back(row);
    const std::int64_t room = s.room_each > 0 ? s.room_each : s.room - row;
    if (s.counts[e] > room) {
      faults.raise(FaultCode::RowsOfExpertBeyondRoom, {s.counts[e], s.first + e, room});
      return std::nullopt;
    }
    row += s.room_each > 0 ? s.room_each : s.counts[e];
  }
  return starts;
}

void sort_slots(const ByExpert& s, const Faults& faults) {
  std::fill_n(s.counts, s.experts, 0);
  for (std::int64_t slot = 0; slot < s.choices.slots(); ++slot) {
    const std::int64_t e = s.expert_of(slot);
    if (e >= 0) ++s.counts[e];
  }
  std::optional<std::vector<std::int64_t>> next = starts_of(s, faults);
  if (!next) return;
  std::fill_n(s.slot_of, s.room, -1);
  std::fill_n(s.token_of, s.room, -1);
  for (std::int64_t slot = 0; slot < s.choices.slots(); ++slot) {
    const std::int64_t e = s.expert_of(slot);
    if (e < 0) {
      s.row_of[slot] = -1;
      continue;
    }
    const std::int64_t r = (*next)[static_cast<std::size_t>(e)]++;
    s.row_of[slot] = static_cast<std::int32_t>(r);
    s.slot_of[r] = static_cast<std::int32_t>(slot);
    s.token_of[r] = static_cast<std::int32_t>(slot / s.choices.k);
  }
}

// A 32-bit division takes a fraction of a 64-bit one's time. Negative offsets: meaningless.
std::int64_t group_of(std::int64_t offset, std::int64_t width) {
  return static_cast<std::uint32_t>(offset) / static_cast<std::uint32_t>(width);
}

// Calls found(token, group) for each group a token chose from, and chosen(token, slot, group) for
// each of its choices there. False if a token's choices do not ascend through the groups, or if
// found returns false.
template <typename Found, typename Slot>
bool walk_groups(const Choices& choices,
                 const ExpertGroups& groups,
                 std::int64_t count,
                 const Faults& faults,
                 const Found& found,
                 const Slot& chosen) {
  for (std::int64_t t = 0; t < choices.tokens; ++t) {
    std::int64_t last = -1;
    for (std::int64_t j = 0; j < choices.k; ++j) {
      const std::int64_t expert = choices.expert[t * choices.k + j];
      if (expert < 0) continue;
      const std::int64_t offset = expert - groups.first;
      const std::int64_t group = group_of(offset, groups.width);
      if (offset < 0 || group >= count || group < last) {
        faults.raise(FaultCode::ChoiceOutOfOrder,
                     {t, expert, last, count, groups.width, groups.first});
        return false;
      }
      if (group != last && !found(t, group)) return false;
      last = group;
      chosen(t, j, group);
    }
  }
  return true;
}

struct ByGroup {
  Choices choices;
  ExpertGroups groups;
  std::int64_t count, room;  // groups; rows
  std::int64_t most;         // rows per token, at most
  std::int32_t *row_of, *token_of, *choice_of;
  std::int64_t* counts;
};

void sort_tokens(const ByGroup& s, const Faults& faults) {
  const std::int64_t k = s.choices.k;
  std::fill_n(s.counts, s.count, 0);
  const auto count = [&](std::int64_t, std::int64_t group) { return ++s.counts[group] > 0; };
  if (!walk_groups(s.choices, s.groups, s.count, faults, count, [](auto...) {})) return;
  std::vector<std::int64_t> next;
  std::int64_t rows = 0;
  for (std::int64_t g = 0; g < s.count; ++g) {
    next.push_back(rows);
    rows += s.counts[g];
  }
  if (rows > s.room) return faults.raise(FaultCode::RowsBeyondRoom, {rows, s.room});
  std::fill_n(s.row_of, s.choices.tokens * s.most, -1);
  std::fill_n(s.token_of + rows, s.room - rows, -1);
  std::fill_n(s.choice_of, s.room * k, -1);
  std::int64_t token = -1, place = 0, row = 0;
  walk_groups(
      s.choices,
      s.groups,
      s.count,
      faults,
      [&](std::int64_t t, std::int64_t group) {
        place = t == token ? place + 1 : 0;
        token = t;
        if (place >= s.most) {
          faults.raise(FaultCode::TooManyRowsOfToken, {t, s.most});
          return false;
        }
        row = next[static_cast<std::size_t>(group)]++;
        s.row_of[t * s.most + place] = static_cast<std::int32_t>(row);
        s.token_of[row] = static_cast<std::int32_t>(t);
        return true;
      },
      [&](std::int64_t t, std::int64_t j, std::int64_t) {
        s.choice_of[row * k + j] = s.choices.expert[t * k + j];
      });
}

}  // namespace

void sort_by_expert(Stream& stream,
                    Tensor row,
                    Tensor slot,
                    Tensor token,
                    Tensor counts,
                    Tensor experts,
                    std::int64_t first,
                    Room room) {
  const Choices choices = choices_of(stream, experts);
  const std::int64_t rows = slot.dim(0), e = counts.dim(0);
  const ByExpert sorting{.choices = choices,
                         .first = first,
                         .experts = e,
                         .room = rows,
                         .room_each = room == Room::Padded ? rows / e : 0,
                         .row_of = data<std::int32_t>(stream, row),
                         .slot_of = data<std::int32_t>(stream, slot),
                         .token_of = data<std::int32_t>(stream, token),
                         .counts = data<std::int64_t>(stream, counts)};
  const Faults faults(stream);
  enqueue(stream, "sort_by_expert", WorkClass::Memory, [=](Workers&) {
    sort_slots(sorting, faults);
  });
}

void sort_by_group(Stream& stream,
                   Tensor row,
                   Tensor token,
                   Tensor choice,
                   Tensor counts,
                   Tensor experts,
                   const ExpertGroups& groups) {
  const Choices choices = choices_of(stream, experts);
  const ByGroup sorting{.choices = choices,
                        .groups = groups,
                        .count = counts.dim(0),
                        .room = token.dim(0),
                        .most = row.dim(1),
                        .row_of = data<std::int32_t>(stream, row),
                        .token_of = data<std::int32_t>(stream, token),
                        .choice_of = data<std::int32_t>(stream, choice),
                        .counts = data<std::int64_t>(stream, counts)};
  const Faults faults(stream);
  enqueue(stream, "sort_by_group", WorkClass::Memory, [=](Workers&) {
    sort_tokens(sorting, faults);
  });
}

void count_by_group(Stream& stream,
                    Tensor rows,
                    Tensor chosen,
                    Tensor experts,
                    const ExpertGroups& groups) {
  const Choices choices = choices_of(stream, experts);
  const std::int64_t count = rows.dim(0);
  std::int64_t* rows_of = data<std::int64_t>(stream, rows);
  std::int64_t* chosen_of = data<std::int64_t>(stream, chosen);
  const Faults faults(stream);
  enqueue(stream, "count_by_group", WorkClass::Memory, [=](Workers&) {
    std::fill_n(rows_of, count, 0);
    std::fill_n(chosen_of, count, 0);
    walk_groups(
        choices,
        groups,
        count,
        faults,
        [&](std::int64_t, std::int64_t group) { return ++rows_of[group] > 0; },
        [&](std::int64_t, std::int64_t, std::int64_t group) { ++chosen_of[group]; });
  });
}

}  // namespace weft::kernels::cpu
