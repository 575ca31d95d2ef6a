#include <set>

#include "tests/kernels/conformance_support.h"
#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::kernels {
namespace sort_rows_test {

// Some choices of experts, ascending, -1 here and there.
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
  std::int64_t each = 0;  // rows an expert, padded; 0: packed
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

class Scratch {
 public:
  Tensor integers(DType dtype, Shape shape, const Values& values = {}) {
    const Tensor x = Tensor::host_visible(pool(), dtype, shape, tensor::Tag::Activations);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (dtype == DType::I32) x.host<std::int32_t>()[i] = std::int32_t(values[i]);
      if (dtype == DType::I64) x.host<std::int64_t>()[i] = std::int64_t(values[i]);
    }
    return x;
  }
  Stream& stream() { return *bench_.stream; }
  Pool& pool() { return bench_.pool; }

 private:
  Workbench bench_;
};

TEST(SortRows, MoreRowsThanThereIsRoomForAreAnError) {
  Scratch s;
  const Tensor experts = s.integers(DType::I32, {2, 2}, {0, 1, 0, 1});
  const Tensor row = s.integers(DType::I32, {2, 2}), room = s.integers(DType::I32, {3});
  const Tensor counts = s.integers(DType::I64, {2});
  EXPECT_THROW(sort_by_expert(s.stream(), row, room, room, counts, experts), base::SystemError);
}

TEST(SortRows, ChoicesThatDoNotAscendOrAreOfNoGroupAreAnError) {
  for (const Values& wrong : {Values{6, 0}, Values{0, 8}, Values{0, -7000}}) {
    Scratch s;
    const Tensor experts = s.integers(DType::I32, {1, 2}, wrong);
    const Tensor row = s.integers(DType::I32, {1, 2}), token = s.integers(DType::I32, {2});
    const Tensor choice = s.integers(DType::I32, {2, 2}), counts = s.integers(DType::I64, {4});
    const auto sort = [&] {
      sort_by_group(s.stream(), row, token, choice, counts, experts, {.first = 0, .width = 2});
    };
    if (wrong.back() < 0) {
      EXPECT_NO_THROW(sort());  // any negative number is none
    } else {
      EXPECT_THROW(sort(), base::SystemError);
    }
  }
}

// Four ranks, two a machine, one token each with two experts: rank 0 to itself and rank 3, rank 1
// to ranks 2 and 3, rank 2 twice to rank 0, rank 3 nowhere.
const Values kCounts{
    1, 1, /* */ 1, 0, 0, 1, /* */ 1, 0, 0, 1,  //
    0, 1, /* */ 0, 0, 1, 1, /* */ 0, 0, 1, 1,  //
    1, 0, /* */ 1, 0, 0, 0, /* */ 2, 0, 0, 0,  //
    0, 0, /* */ 0, 0, 0, 0, /* */ 0, 0, 0, 0,
};

std::vector<std::int64_t> splits(Scratch& s, int rank, std::int64_t budget, double& overflow) {
  const Hops hops{.ranks = 4,
                  .per_machine = 2,
                  .rank = rank,
                  .most_tokens = 1,
                  .most_choices = 2,
                  .most_local = 2,
                  .budget = budget};
  const Tensor out = s.integers(DType::I64, {hops.splits()});
  const Tensor flag = Tensor::host_visible(s.pool(), DType::F64, {1}, tensor::Tag::Activations);
  *flag.host<double>() = 0;
  plan_hops(s.stream(), out, flag, s.integers(DType::I64, {4, 10}, kCounts), hops);
  overflow = *flag.host<double>();
  return {out.host<std::int64_t>(), out.host<std::int64_t>() + hops.splits()};
}

TEST(PlanHops, RowsGoAcrossMachinesOnceAndThenToTheirRanks) {
  using Rows = std::vector<std::int64_t>;
  Scratch s;
  double overflow = 0;
  // across: to each machine, from each machine; within: to each rank, from each rank; slots that
  // arrive.
  EXPECT_EQ(splits(s, 0, 0, overflow), (Rows{1, 1, /**/ 1, 1, /**/ 2, 0, /**/ 2, 0, /**/ 3}));
  EXPECT_EQ(splits(s, 1, 0, overflow), (Rows{0, 1, /**/ 0, 0, /**/ 0, 0, /**/ 0, 0, /**/ 0}));
  EXPECT_EQ(splits(s, 2, 0, overflow), (Rows{1, 0, /**/ 1, 0, /**/ 0, 1, /**/ 0, 1, /**/ 1}));
  EXPECT_EQ(splits(s, 3, 0, overflow), (Rows{0, 0, /**/ 1, 0, /**/ 1, 1, /**/ 1, 1, /**/ 2}));
}

TEST(PlanHops, WhereABudgetIsTooSmallNothingTravelsAndAllRanksSaySo) {
  Scratch s;
  for (int rank = 0; rank < 4; ++rank) {
    double overflow = 0;
    EXPECT_NE(splits(s, rank, 3, overflow), std::vector<std::int64_t>(9, 0));
    EXPECT_EQ(overflow, 0);
    EXPECT_EQ(splits(s, rank, 2, overflow), std::vector<std::int64_t>(9, 0));
    EXPECT_EQ(overflow, 1);
  }
}

// What two members counted, sealed, changed on the way and opened; empty where that is an error.
std::vector<std::int64_t> opened(const std::function<void(std::int64_t*)>& change) {
  Scratch s;
  const Tensor table = s.integers(DType::I64, {2, 4});
  const Values counts[]{{0, 7, 7, 1e12}, {3, 0, 0, 0}};
  for (int member = 0; member < 2; ++member) {
    const Tensor own = s.integers(DType::I64, {4}, counts[member]);
    seal_counts(s.stream(), own, member);
    std::copy_n(own.host<std::int64_t>(), 4, table.host<std::int64_t>() + member * 4);
  }
  change(table.host<std::int64_t>());
  try {
    open_counts(s.stream(), table);
    return {table.host<std::int64_t>(), table.host<std::int64_t>() + 8};
  } catch (const base::SystemError&) {
    return {};
  }
}

TEST(SealedCounts, OpenAsTheyWereAndAreNotOnesOfAnotherPlaceOrMember) {
  EXPECT_EQ(opened([](std::int64_t*) {}),
            (std::vector<std::int64_t>{0, 7, 7, 1'000'000'000'000, 3, 0, 0, 0}));
  EXPECT_TRUE(opened([](std::int64_t* n) { std::swap(n[1], n[2]); }).empty());
  EXPECT_TRUE(opened([](std::int64_t* n) { std::swap(n[0], n[5]); }).empty());
  for (int bit = 0; bit < 64; ++bit) {
    const auto flip = [&](std::int64_t* n) {
      n[6] ^= static_cast<std::int64_t>(std::uint64_t{1} << bit);
    };
    EXPECT_TRUE(opened(flip).empty()) << bit;
  }
}

TEST(PlanHops, NumbersThatARankCannotHaveAreErrorsThatNameIt) {
  const Hops hops{.ranks = 2, .most_tokens = 4, .most_choices = 2, .most_local = 1};
  const auto complaint = [&](const Values& counts) -> std::string {
    Scratch s;
    try {
      plan_hops(s.stream(),
                s.integers(DType::I64, {hops.splits()}),
                {},
                s.integers(DType::I64, {2, 4}, counts),
                hops);
    } catch (const base::SystemError& error) {
      const std::string text = error.what();
      return text.substr(text.find("member"));
    }
    return "accepted";
  };
  EXPECT_EQ(complaint({4, 4, 4, 4, 0, 0, 0, 0}), "accepted");
  EXPECT_EQ(complaint({0, 0, 0, 0, -1, 0, 0, 0}),
            "member 1 announces -1 rows for a machine; it can have at most 4");
  EXPECT_EQ(complaint({5, 0, 0, 0, 0, 0, 0, 0}),
            "member 0 announces 5 rows for a machine; it can have at most 4");
  EXPECT_EQ(complaint({1, 0, 2, 0, 0, 0, 0, 0}),
            "member 0 announces 2 slots for a rank; it can have at most 1");
}

}  // namespace sort_rows_test
}  // namespace weft::kernels
