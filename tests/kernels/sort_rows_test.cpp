#include <set>

#include "tests/kernels/conformance_support.h"
#include "tests/kernels/scratch_support.h"
#include "weft/base/text.h"

namespace weft::kernels {
namespace sort_rows_test {

// Choices of experts, ascending, with occasional -1.
Values choices(std::int64_t tokens, std::int64_t k, std::int64_t experts, std::int64_t none_every) {
  Values all;
  for (std::int64_t t = 0; t < tokens; ++t) {
    std::set<std::int64_t> chosen;
    for (std::int64_t i = 0; std::ssize(chosen) < k; ++i) {
      chosen.insert((t * 7 + i * (t % 3 + 1) * 5 + i * i) % experts);
    }
    for (const std::int64_t e : chosen) {
      const bool none = none_every > 0 && std::ssize(all) % none_every == 1;
      all.push_back(none ? -1.0 : double(e));
    }
  }
  return all;
}

struct Window {
  std::int64_t first = 0, experts = 0;
  std::int64_t each = 0;  // padded: rows per expert; 0: packed
  std::int64_t room = 0;
};

void add_sort(std::vector<Case>& cases,
              const char* name,
              std::int64_t t,
              std::int64_t k,
              const Values& experts,
              const Window& window) {
  cases.push_back({base::text("sort_by_expert_{}", name),
                   {output("row", DType::I32, {t, k}),
                    output("slot", DType::I32, {window.room}),
                    output("token", DType::I32, {window.room}),
                    output("counts", DType::I64, {window.experts}),
                    input("experts", DType::I32, {t, k}, experts)},
                   [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     const Room room = window.each > 0 ? Room::Padded : Room::Packed;
                     sort_by_expert(stream, a[0], a[1], a[2], a[3], a[4], window.first, room);
                   },
                   [=](const std::vector<Argument>&) {
                     Values row(experts.size(), -1.0), slot(std::size_t(window.room), -1.0),
                         token = slot;
                     Values counts(std::size_t(window.experts), 0.0);
                     std::int64_t next = 0;
                     for (std::int64_t e = 0; e < window.experts; ++e) {
                       if (window.each > 0) next = e * window.each;
                       for (std::size_t s = 0; s < experts.size(); ++s) {
                         if (experts[s] != double(window.first + e)) continue;
                         row[s] = double(next);
                         slot[std::size_t(next)] = double(s);
                         token[std::size_t(next)] = double(s / std::size_t(k));
                         counts[std::size_t(e)] += 1;
                         ++next;
                       }
                     }
                     return std::vector{whole(0, row, 0),
                                        whole(1, slot, 0),
                                        whole(2, token, 0),
                                        whole(3, counts, 0)};
                   }});
}

struct Grouped {
  Values row, token, choice, rows, chosen;
};

Grouped reference(const Values& experts,
                  std::int64_t t,
                  std::int64_t k,
                  std::int64_t most,
                  std::int64_t room,
                  std::int64_t groups,
                  const ExpertGroups& of) {
  Grouped want{Values(std::size_t(t * most), -1.0),
               Values(std::size_t(room), -1.0),
               Values(std::size_t(room * k), -1.0),
               Values(std::size_t(groups), 0.0),
               Values(std::size_t(groups), 0.0)};
  std::vector<std::int64_t> places(std::size_t(t), 0);
  std::int64_t next = 0;
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t token = 0; token < t; ++token) {
      bool has = false;
      for (std::int64_t j = 0; j < k; ++j) {
        const auto e = std::int64_t(experts[std::size_t(token * k + j)]);
        if (e < 0 || (e - of.first) / of.width != g) continue;
        has = true;
        want.choice[std::size_t(next * k + j)] = double(e);
        want.chosen[std::size_t(g)] += 1;
      }
      if (!has) continue;
      want.row[std::size_t(token * most + places[std::size_t(token)]++)] = double(next);
      want.token[std::size_t(next)] = double(token);
      want.rows[std::size_t(g)] += 1;
      ++next;
    }
  }
  return want;
}

void add_groups(std::vector<Case>& cases,
                const char* name,
                std::int64_t t,
                std::int64_t k,
                const Values& experts,
                std::int64_t groups,
                const ExpertGroups& of,
                std::int64_t spare) {
  const std::int64_t most = std::min(k, groups), room = t * most + spare;
  const Grouped want = reference(experts, t, k, most, room, groups, of);
  const Argument chosen = input("experts", DType::I32, {t, k}, experts);
  cases.push_back({base::text("sort_by_group_{}", name),
                   {output("row", DType::I32, {t, most}),
                    output("token", DType::I32, {room}),
                    output("choice", DType::I32, {room, k}),
                    output("counts", DType::I64, {groups}),
                    chosen},
                   [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     sort_by_group(stream, a[0], a[1], a[2], a[3], a[4], of);
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{whole(0, want.row, 0),
                                        whole(1, want.token, 0),
                                        whole(2, want.choice, 0),
                                        whole(3, want.rows, 0)};
                   }});
  cases.push_back(
      {base::text("count_by_group_{}", name),
       {output("rows", DType::I64, {groups}), output("choices", DType::I64, {groups}), chosen},
       [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
         count_by_group(stream, a[0], a[1], a[2], of);
       },
       [=](const std::vector<Argument>&) {
         return std::vector{whole(0, want.rows, 0), whole(1, want.chosen, 0)};
       }});
  const Shape ps{t, k};
  const Argument p = input("p", DType::F32, ps, draw(5, ps));
  cases.push_back({base::text("gather_choices_{}", name),
                   {output("p_Rk", DType::F32, {room, k}),
                    p,
                    input("token", DType::I32, {room}, want.token),
                    input("choice", DType::I32, {room, k}, want.choice)},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     gather_choices(stream, a[0], a[1], a[2], a[3]);
                   },
                   [=](const std::vector<Argument>&) {
                     Values gathered;
                     for (std::int64_t r = 0; r < room; ++r) {
                       for (std::int64_t j = 0; j < k; ++j) {
                         const bool own = want.choice[std::size_t(r * k + j)] >= 0;
                         const auto token = std::int64_t(want.token[std::size_t(r)]);
                         gathered.push_back(own ? p.values[std::size_t(token * k + j)] : 0.0);
                       }
                     }
                     return std::vector{whole(0, gathered, 0)};
                   }});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const Values some = choices(9, 3, 8, 0), holes = choices(9, 3, 8, 4);
  add_sort(all, "packed", 9, 3, some, {.first = 0, .experts = 8, .room = 27});
  add_sort(all, "with_holes", 9, 3, holes, {.first = 0, .experts = 8, .room = 27});
  add_sort(all, "of_a_window", 9, 3, holes, {.first = 2, .experts = 3, .room = 30});
  add_sort(all, "padded", 9, 3, holes, {.first = 0, .experts = 8, .each = 9, .room = 72});
  add_sort(all, "without_tokens", 0, 2, {}, {.first = 0, .experts = 3, .room = 4});
  add_groups(all, "of_two", 9, 3, some, 4, {.first = 0, .width = 2}, 0);
  add_groups(all, "with_holes", 9, 3, holes, 4, {.first = 0, .width = 2}, 5);
  add_groups(all, "of_all", 9, 3, holes, 1, {.first = 0, .width = 8}, 0);
  add_groups(all, "further_on", 2, 2, {4, 6, 5, -1}, 2, {.first = 4, .width = 2}, 1);
  add_groups(all, "without_tokens", 0, 2, {}, 2, {.first = 0, .width = 4}, 1);
  all.push_back({"sum_counts",
                 {output("rows", DType::I64, {2}),
                  input("counts", DType::I64, {3, 4}, {1, 2, 3, 4, 0, 0, 5, 6, 7, 8, 1, 1})},
                 [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                   sum_counts(stream, a[0], a[1], 2);
                 },
                 [](const std::vector<Argument>&) {
                   return std::vector{whole(0, Values{9, 11}, 0)};
                 }});
  for (const DType dtype : {DType::I32, DType::I64}) {
    all.push_back(
        {base::text("fill_{}", tensor::name_of(dtype)),
         {output("y", dtype, {5})},
         [](Stream& stream, Pool&, const std::vector<Tensor>& a) { fill(stream, a[0], -1); },
         [](const std::vector<Argument>&) { return std::vector{whole(0, Values(5, -1.0), 0)}; }});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(SortRows, Conformance, testing::ValuesIn(on_devices(cases())), case_name);

class SortRowsOn : public testing::TestWithParam<DeviceKind> {
 protected:
  // Error of sorting the choices of two tokens, with room for `rows` rows of two experts.
  std::string expert_error(std::int64_t rows, Room room) {
    Scratch s(GetParam());
    const Tensor experts = s.tensor(DType::I32, {2, 2}, {4, 5, 4, 5});
    const Tensor row = s.tensor(DType::I32, {2, 2}), counts = s.tensor(DType::I64, {2});
    const Tensor slot = s.tensor(DType::I32, {rows}), token = s.tensor(DType::I32, {rows});
    return s.error_of([&](Stream& stream) {
      sort_by_expert(stream, row, slot, token, counts, experts, 4, room);
    });
  }
  // Error of sorting three tokens by four groups of two experts, from expert 4 on; `second`:
  // choices of the second token.
  std::string group_error(const Values& second, std::int64_t rows, std::int64_t most) {
    Scratch s(GetParam());
    const Tensor experts = choices_around(s, second);
    const Tensor row = s.tensor(DType::I32, {3, most}), token = s.tensor(DType::I32, {rows});
    const Tensor choice = s.tensor(DType::I32, {rows, 2}), counts = s.tensor(DType::I64, {4});
    return s.error_of([&](Stream& stream) {
      sort_by_group(stream, row, token, choice, counts, experts, kGroups);
    });
  }
  std::string count_error(const Values& second) {
    Scratch s(GetParam());
    const Tensor experts = choices_around(s, second);
    const Tensor rows = s.tensor(DType::I64, {4}), chosen = s.tensor(DType::I64, {4});
    return s.error_of(
        [&](Stream& stream) { count_by_group(stream, rows, chosen, experts, kGroups); });
  }

 private:
  static constexpr ExpertGroups kGroups{.first = 4, .width = 2};

  static Tensor choices_around(Scratch& s, const Values& second) {
    return s.tensor(DType::I32, {3, 2}, {4, 5, second[0], second[1], 10, -1});
  }
};

TEST_P(SortRowsOn, MoreRowsThanThereIsRoomForAreAnError) {
  EXPECT_EQ(expert_error(4, Room::Packed), "none");
  EXPECT_EQ(expert_error(3, Room::Packed),
            outside_fault("sort_by_expert", "2 rows for expert 5, and room for 1"));
  EXPECT_EQ(expert_error(1, Room::Packed),
            outside_fault("sort_by_expert", "2 rows for expert 4, and room for 1"));
  EXPECT_EQ(expert_error(4, Room::Padded), "none");
  EXPECT_EQ(expert_error(2, Room::Padded),
            outside_fault("sort_by_expert", "2 rows for expert 4, and room for 1"));
  EXPECT_EQ(group_error({5, 6}, 4, 2), "none");
  EXPECT_EQ(group_error({5, 6}, 3, 2), outside_fault("sort_by_group", "4 rows, and room for 3"));
}

TEST_P(SortRowsOn, ATokenWithMoreRowsThanItMayHaveIsAnError) {
  EXPECT_EQ(group_error({6, 7}, 6, 1), "none");
  EXPECT_EQ(group_error({5, 6}, 6, 1), own_fault("sort_by_group", "token 1 has more than 1 rows"));
}

TEST_P(SortRowsOn, ChoicesThatDoNotAscendOrAreOfNoGroupAreAnError) {
  const auto wrong = [](std::int64_t expert, int after) {
    return base::text("token 1 chose expert {} after group {} of 4 groups of 2 experts from 4 on",
                      expert,
                      after);
  };
  EXPECT_EQ(group_error({4, -7000}, 6, 2), "none") << "any negative number is none";
  EXPECT_EQ(group_error({10, 4}, 6, 2), outside_fault("sort_by_group", wrong(4, 3)));
  EXPECT_EQ(group_error({4, 12}, 6, 2), outside_fault("sort_by_group", wrong(12, 0)));
  EXPECT_EQ(group_error({3, 5}, 6, 2), outside_fault("sort_by_group", wrong(3, -1)));
  EXPECT_EQ(count_error({4, -7000}), "none");
  EXPECT_EQ(count_error({10, 4}), outside_fault("count_by_group", wrong(4, 3)));
  EXPECT_EQ(count_error({4, 12}), outside_fault("count_by_group", wrong(12, 0)));
  EXPECT_EQ(count_error({3, 5}), outside_fault("count_by_group", wrong(3, -1)));
}

INSTANTIATE_TEST_SUITE_P(SortRows,
                         SortRowsOn,
                         testing::ValuesIn(devices::all_devices()),
                         device_name);

}  // namespace sort_rows_test
}  // namespace weft::kernels
