#include <set>

#include "tests/kernels/conformance_support.h"
#include "tests/kernels/scratch_support.h"
#include "weft/base/text.h"

namespace weft::kernels {
namespace plan_hops_test {

// Ranks whose tokens choose from experts of all ranks.
struct Routing {
  std::int64_t ranks, per_machine;
  std::int64_t tokens = 9, k = 3;  // per rank; per token

  std::int64_t machines() const { return ranks / per_machine; }
  // Ranks of a token's experts, with multiplicity; empty for some tokens.
  std::multiset<std::int64_t> chosen(std::int64_t rank, std::int64_t token) const {
    std::multiset<std::int64_t> of;
    for (std::int64_t j = 0; j < k && (rank + token) % 6 != 5; ++j) {
      of.insert((rank * 31 + token * 17 + j * (token % 4) * 5 + j * j) % ranks);
    }
    return of;
  }
  bool goes_to_rank(std::int64_t source, std::int64_t token, std::int64_t rank) const {
    return chosen(source, token).contains(rank);
  }
  bool goes_to_machine(std::int64_t source, std::int64_t token, std::int64_t machine) const {
    for (const std::int64_t rank : chosen(source, token)) {
      if (rank / per_machine == machine) return true;
    }
    return false;
  }

  // Number of a rank's tokens with experts on another rank.
  std::int64_t to_rank(std::int64_t source, std::int64_t rank) const {
    std::int64_t rows = 0;
    for (std::int64_t t = 0; t < tokens; ++t) rows += goes_to_rank(source, t, rank);
    return rows;
  }
  std::int64_t to_machine(std::int64_t source, std::int64_t machine) const {
    std::int64_t rows = 0;
    for (std::int64_t t = 0; t < tokens; ++t) rows += goes_to_machine(source, t, machine);
    return rows;
  }
  std::int64_t slots(std::int64_t source, std::int64_t rank) const {
    std::int64_t sum = 0;
    for (std::int64_t t = 0; t < tokens; ++t) sum += std::ssize(chosen_of(source, t, rank));
    return sum;
  }
  std::int64_t arriving(std::int64_t rank) const {
    std::int64_t sum = 0;
    for (std::int64_t source = 0; source < ranks; ++source) sum += slots(source, rank);
    return sum;
  }
  std::int64_t most_arriving() const {
    std::int64_t most = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) most = std::max(most, arriving(rank));
    return most;
  }

 private:
  std::vector<std::int64_t> chosen_of(std::int64_t source,
                                      std::int64_t token,
                                      std::int64_t rank) const {
    const std::multiset<std::int64_t> all = chosen(source, token);
    return {all.lower_bound(rank), all.upper_bound(rank)};
  }
};

// Counts of each rank over its own tokens, one line per rank.
Values counts_of(const Routing& r) {
  Values counts;
  for (std::int64_t source = 0; source < r.ranks; ++source) {
    for (std::int64_t m = 0; m < r.machines(); ++m) {
      counts.push_back(double(r.to_machine(source, m)));
    }
    for (std::int64_t rank = 0; rank < r.ranks && r.per_machine > 1; ++rank) {
      counts.push_back(double(r.to_rank(source, rank)));
    }
    for (std::int64_t rank = 0; rank < r.ranks; ++rank) {
      counts.push_back(double(r.slots(source, rank)));
    }
  }
  return counts;
}

// Splits of a rank, followed row by row: a row crosses to the rank of its own index on a machine,
// which forwards it to each rank with experts of the token.
Values splits_of(const Routing& r, std::int64_t rank) {
  const std::int64_t machine = rank / r.per_machine, index = rank % r.per_machine;
  const auto rank_of = [&](std::int64_t m, std::int64_t i) { return m * r.per_machine + i; };
  // Rows that rank `by` of this machine forwards from all machines to rank `to`.
  const auto passed_on = [&](std::int64_t by, std::int64_t to) {
    std::int64_t rows = 0;
    for (std::int64_t m = 0; m < r.machines(); ++m) rows += r.to_rank(rank_of(m, by), to);
    return double(rows);
  };
  Values splits;
  for (std::int64_t m = 0; m < r.machines(); ++m) splits.push_back(double(r.to_machine(rank, m)));
  for (std::int64_t m = 0; m < r.machines(); ++m) {
    splits.push_back(double(r.to_machine(rank_of(m, index), machine)));
  }
  for (std::int64_t i = 0; i < r.per_machine; ++i) {
    splits.push_back(passed_on(index, rank_of(machine, i)));
  }
  for (std::int64_t i = 0; i < r.per_machine; ++i) splits.push_back(passed_on(i, rank));
  splits.push_back(double(r.arriving(rank)));
  return splits;
}

void add_case(std::vector<Case>& cases,
              const Routing& r,
              std::int64_t rank,
              std::int64_t budget,
              const char* name) {
  const Hops hops{.ranks = r.ranks,
                  .per_machine = r.per_machine,
                  .rank = rank,
                  .most_tokens = r.tokens,
                  .most_choices = r.k,
                  .most_local = r.k,
                  .budget = budget};
  std::vector<Argument> arguments{
      output("splits", DType::I64, {hops.splits()}),
      strided(input("counts", DType::I64, {r.ranks, hops.counts()}, counts_of(r)))};
  const bool fits = budget == 0 || r.most_arriving() <= budget;
  if (budget > 0) {
    Argument overflow = output("overflow", DType::F64, {1});
    overflow.role = Role::Sum;
    overflow.values = {3};
    arguments.push_back(overflow);
  }
  cases.push_back({base::text("{}_{}x{}_{}", name, r.machines(), r.per_machine, rank),
                   arguments,
                   [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     plan_hops(stream, a[0], a.size() > 2 ? a[2] : Tensor(), a[1], hops);
                   },
                   [=](const std::vector<Argument>& given) {
                     const Values none(std::size_t(hops.splits()), 0.0);
                     std::vector all{whole(0, fits ? splits_of(r, rank) : none, 0)};
                     if (given.size() > 2) all.push_back(whole(2, {fits ? 0.0 : 1.0}, 0));
                     return all;
                   }});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Routing& r : {Routing{1, 1}, {6, 1}, {4, 2}, {8, 8}, {70, 7}, {70, 1}}) {
    for (const std::int64_t rank : std::set{std::int64_t{0}, r.ranks * 2 / 3}) {
      add_case(all, r, rank, 0, "without_budget");
      add_case(all, r, rank, r.most_arriving(), "budget_enough");
      add_case(all, r, rank, r.most_arriving() - 1, "budget_too_small");
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(PlanHops, Conformance, testing::ValuesIn(on_devices(cases())), case_name);

class PlanHopsOn : public testing::TestWithParam<DeviceKind> {};

// Four ranks, two per machine, one token each with two experts: rank 0 to itself and rank 3, rank 1
// to ranks 2 and 3, rank 2 twice to rank 0, rank 3 to none.
const Values kCounts{
    1, 1, /* */ 1, 0, 0, 1, /* */ 1, 0, 0, 1,  //
    0, 1, /* */ 0, 0, 1, 1, /* */ 0, 0, 1, 1,  //
    1, 0, /* */ 1, 0, 0, 0, /* */ 2, 0, 0, 0,  //
    0, 0, /* */ 0, 0, 0, 0, /* */ 0, 0, 0, 0,
};

struct Planned {
  Values splits;
  double overflow = 0;
};

Planned planned(DeviceKind device, int rank, std::int64_t budget) {
  Scratch s(device);
  const Hops hops{.ranks = 4,
                  .per_machine = 2,
                  .rank = rank,
                  .most_tokens = 1,
                  .most_choices = 2,
                  .most_local = 2,
                  .budget = budget};
  const Tensor splits = s.filled(DType::I64, {hops.splits()}, -1);
  const Tensor overflow = s.tensor(DType::F64, {1});
  const Tensor counts = s.tensor(DType::I64, {4, 10}, kCounts);
  plan_hops(s.stream(), splits, overflow, counts, hops);
  return {s.read(splits), s.read(overflow)[0]};
}

TEST_P(PlanHopsOn, RowsGoAcrossMachinesOnceAndThenToTheirRanks) {
  const auto splits = [&](int rank) { return planned(GetParam(), rank, 0).splits; };
  // across: to each machine, from each machine; within: to each rank, from each rank; slots that
  // arrive.
  EXPECT_EQ(splits(0), (Values{1, 1, /**/ 1, 1, /**/ 2, 0, /**/ 2, 0, /**/ 3}));
  EXPECT_EQ(splits(1), (Values{0, 1, /**/ 0, 0, /**/ 0, 0, /**/ 0, 0, /**/ 0}));
  EXPECT_EQ(splits(2), (Values{1, 0, /**/ 1, 0, /**/ 0, 1, /**/ 0, 1, /**/ 1}));
  EXPECT_EQ(splits(3), (Values{0, 0, /**/ 1, 0, /**/ 1, 1, /**/ 1, 1, /**/ 2}));
}

TEST_P(PlanHopsOn, WhereABudgetIsTooSmallNothingTravelsAndAllRanksSaySo) {
  for (int rank = 0; rank < 4; ++rank) {
    const Planned enough = planned(GetParam(), rank, 3), small = planned(GetParam(), rank, 2);
    EXPECT_EQ(enough.splits, planned(GetParam(), rank, 0).splits);
    EXPECT_EQ(enough.overflow, 0);
    EXPECT_EQ(small.splits, Values(9, 0));
    EXPECT_EQ(small.overflow, 1);
  }
}

std::string error_of(DeviceKind device, const Hops& hops, const Values& counts) {
  Scratch s(device);
  const Tensor splits = s.tensor(DType::I64, {hops.splits()});
  const Tensor table = s.tensor(DType::I64, {hops.ranks, hops.counts()}, counts);
  return s.error_of([&](Stream& stream) { plan_hops(stream, splits, {}, table, hops); });
}

std::string announced(int member, int count, const char* what, int most) {
  return outside_fault(
      "plan_hops",
      base::text("member {} announces {} {}; it can have at most {}", member, count, what, most));
}

TEST_P(PlanHopsOn, NumbersThatARankCannotHaveAreErrorsThatNameIt) {
  const Hops hops{.ranks = 2, .most_tokens = 4, .most_choices = 2, .most_local = 1};
  const auto error = [&](const Values& counts) { return error_of(GetParam(), hops, counts); };
  EXPECT_EQ(error({4, 4, 4, 4, 0, 0, 0, 0}), "none");
  EXPECT_EQ(error({0, 0, 0, 0, -1, 0, 0, 0}), announced(1, -1, "rows for a machine", 4));
  EXPECT_EQ(error({5, 0, 0, 0, 0, 0, 0, 0}), announced(0, 5, "rows for a machine", 4));
  EXPECT_EQ(error({1, 0, 2, 0, 0, 0, 0, 0}), announced(0, 2, "slots for a rank", 1));
  EXPECT_EQ(error({1, 0, -1, 0, 0, 0, 0, 0}), announced(0, -1, "slots for a rank", 1));
}

TEST_P(PlanHopsOn, RowsForARankAndSlotsInAllAreBoundedToo) {
  const Hops together{.ranks = 2, .per_machine = 2, .most_tokens = 4, .most_choices = 2};
  const auto of_ranks = [&](const Values& counts) {
    return error_of(GetParam(), together, counts);
  };
  EXPECT_EQ(of_ranks({4, 4, 4, 4, 4, 0, 0, 0, 0, 0}), "none");
  EXPECT_EQ(of_ranks({4, 4, 5, 0, 0, 0, 0, 0, 0, 0}), announced(0, 5, "rows for a rank", 4));
  EXPECT_EQ(of_ranks({0, 0, 0, 0, 0, 4, -1, 0, 0, 0}), announced(1, -1, "rows for a rank", 4));
  const Hops apart{.ranks = 2, .most_tokens = 4, .most_choices = 1, .most_local = 2};
  const auto in_all = [&](const Values& counts) { return error_of(GetParam(), apart, counts); };
  EXPECT_EQ(in_all({0, 0, 0, 0, 4, 4, 3, 1}), "none");
  EXPECT_EQ(in_all({0, 0, 0, 0, 4, 4, 4, 1}), announced(1, 5, "slots in all", 4));
}

// More members than a GPU checks at once.
TEST_P(PlanHopsOn, TheFirstMemberWithAWrongNumberIsNamed) {
  const Routing r{70, 7};
  const Hops hops{.ranks = r.ranks,
                  .per_machine = r.per_machine,
                  .most_tokens = r.tokens,
                  .most_choices = r.k,
                  .most_local = r.k};
  Values counts = counts_of(r);
  const auto number = [&](std::int64_t member, std::int64_t place) -> double& {
    return counts[std::size_t(member * hops.counts() + place)];
  };
  number(69, 0) = -3;
  number(41, hops.machines() + 69) = 11;  // after its other rows
  number(41, hops.counts() - 1) = 1000;   // its slots come after its rows
  EXPECT_EQ(error_of(GetParam(), hops, counts), announced(41, 11, "rows for a rank", 9));
  number(41, 3) = 10;
  EXPECT_EQ(error_of(GetParam(), hops, counts), announced(41, 10, "rows for a machine", 9));
  number(40, hops.counts() - 1) = -1;
  EXPECT_EQ(error_of(GetParam(), hops, counts),
            announced(40, -1, "slots for a rank", int(r.k * r.to_rank(40, 69))));
}

INSTANTIATE_TEST_SUITE_P(PlanHops,
                         PlanHopsOn,
                         testing::ValuesIn(devices::all_devices()),
                         device_name);

}  // namespace plan_hops_test
}  // namespace weft::kernels
