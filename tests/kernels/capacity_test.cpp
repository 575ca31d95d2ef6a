// Counts of rows, capacity limits, and bias updates by the counts.
#include "tests/kernels/conformance_support.h"
#include "tests/kernels/scratch_support.h"
#include "weft/base/text.h"

namespace weft::kernels {
namespace capacity_test {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

struct Slots {
  std::int64_t t, k, e;
  Values experts, p;
};

// Low experts are chosen more often; probabilities repeat, so that ties occur.
Slots slots_of(std::int64_t t, std::int64_t k, std::int64_t e) {
  Slots s{t, k, e, {}, {}};
  for (std::int64_t slot = 0; slot < t * k; ++slot) {
    const std::int64_t token = slot / k, j = slot % k;
    s.experts.push_back(double((token * token % 3 + j * 2) % e));
    s.p.push_back(double((slot * 7) % 5 + 1) / 8);
  }
  return s;
}

// Slots that stay, found by comparing all slots of an expert.
std::vector<bool> staying(const Slots& s, std::int64_t capacity, Keep keep) {
  std::vector<bool> stay;
  for (std::size_t i = 0; i < s.experts.size(); ++i) {
    std::int64_t better = 0;
    for (std::size_t j = 0; j < s.experts.size(); ++j) {
      if (s.experts[j] != s.experts[i]) continue;
      const bool by_p = keep == Keep::MostProbable && s.p[j] != s.p[i];
      better += by_p ? s.p[j] > s.p[i] : j < i;
    }
    stay.push_back(better < capacity);
  }
  return stay;
}

void add_drop(std::vector<Case>& cases, const Slots& s, std::int64_t capacity, Keep keep) {
  const Shape shape{s.t, s.k};
  const std::vector<bool> stay = staying(s, capacity, keep);
  Values kept_p, kept_experts;
  for (std::size_t i = 0; i < stay.size(); ++i) {
    kept_p.push_back(stay[i] ? s.p[i] : 0);
    kept_experts.push_back(stay[i] ? s.experts[i] : -1);
  }
  const auto dropped = double(std::count(stay.begin(), stay.end(), false));
  const auto name = [&](const char* op) {
    const char* which = keep == Keep::MostProbable ? "probs" : "position";
    return base::text("{}_{}_{}x{}x{}_{}", op, which, s.t, s.k, s.e, capacity);
  };
  Argument sum = output("dropped", DType::I64, {1});
  sum.role = Role::Sum;
  sum.values = {3};
  cases.push_back(
      {name("drop_over_capacity_forward"),
       {output("kept_p", DType::F32, shape),
        output("kept_experts", DType::I32, shape),
        sum,
        input("p", DType::F32, shape, s.p),
        input("experts", DType::I32, shape, s.experts)},
       [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
         drop_over_capacity_forward(stream, a[0], a[1], a[2], a[3], a[4], s.e, capacity, keep);
       },
       [=](const std::vector<Argument>&) {
         return std::vector{whole(0, kept_p, 0), whole(1, kept_experts, 0), whole(2, {dropped}, 0)};
       }});
  const Argument dkept = input("dkept_p", DType::F32, shape, draw(5, shape));
  Values dp = dkept.values;
  for (std::size_t i = 0; i < dp.size(); ++i) dp[i] = stay[i] ? dp[i] : 0;
  cases.push_back({name("drop_over_capacity_dgrad"),
                   {output("dp", DType::F32, shape),
                    dkept,
                    input("kept_experts", DType::I32, shape, kept_experts)},
                   [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     drop_over_capacity_dgrad(stream, a[0], a[1], a[2]);
                   },
                   [=](const std::vector<Argument>&) { return std::vector{whole(0, dp, 0)}; }});
}

// Counts of tokens over all `runs` runs, or from token `first` on.
void add_counts(std::vector<Case>& cases,
                const Slots& s,
                std::int64_t runs,
                std::int64_t first = 0) {
  TokenRuns equal;
  if (runs > 1) equal = {.first = first, .length = (first + s.t + runs - 1) / runs};
  Values counts(at(runs * s.e), 0.0);
  for (std::int64_t slot = 0; slot < s.t * s.k; ++slot) {
    const std::int64_t run = (first + slot / s.k) / equal.length;
    ++counts[at(run * s.e) + at(std::int64_t(s.experts[at(slot)]))];
  }
  Argument sums = output("counts", DType::I64, {runs, s.e});
  sums.role = Role::Sum;
  sums.values = Values(at(runs * s.e), 2.0);
  cases.push_back({base::text("count_experts_{}x{}x{}_{}_{}", s.t, s.k, s.e, runs, first),
                   {sums, strided(input("experts", DType::I32, {s.t, s.k}, s.experts))},
                   [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     count_experts(stream, a[0], a[1], equal);
                   },
                   [=](const std::vector<Argument>&) { return std::vector{whole(0, counts, 0)}; }});
}

void add_bias(std::vector<Case>& cases, const Values& counts, const Values& moves) {
  Argument bias = sum_into("bias", {std::ssize(counts)});
  Values moved = moves;
  for (double& move : moved) move *= 0.25;
  cases.push_back(
      {base::text("move_bias_{}_{}", counts.size(), counts[0]),
       {bias, input("counts", DType::I64, {std::ssize(counts)}, counts)},
       [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
         move_bias(stream, a[0], a[1], 0.25f);
       },
       [=](const std::vector<Argument>&) { return std::vector{whole(0, moved, 1e-6)}; }});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Slots& s :
       {slots_of(0, 2, 4), slots_of(1, 1, 1), slots_of(30, 2, 5), slots_of(400, 3, 8)}) {
    for (const std::int64_t capacity : {0, 1, 7, 1000}) {
      add_drop(all, s, capacity, Keep::MostProbable);
      add_drop(all, s, capacity, Keep::FirstTokens);
    }
    add_counts(all, s, 1);
    if (s.t > 1) add_counts(all, s, 10);
    if (s.t > 1) add_counts(all, s, 7, 111);
  }
  add_bias(all, {1, 2, 3}, {1, 0, -1});
  add_bias(all, {7, 0, 0, 0}, {-1, 1, 1, 1});
  add_bias(all, {5, 5}, {0, 0});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Capacity, Conformance, testing::ValuesIn(on_devices(cases())), case_name);

class CapacityOn : public testing::TestWithParam<DeviceKind> {};

TEST_P(CapacityOn, AnExpertThatIsNoneIsAnError) {
  const auto error_of = [&](const std::string& operation, double expert) {
    Scratch s(GetParam());
    const Tensor experts = s.tensor(DType::I32, {2, 2}, {0, 4, expert, 1});
    const Tensor kept = s.tensor(DType::I32, {2, 2}), counts = s.tensor(DType::I64, {1, 5});
    const Tensor p = s.tensor(DType::F32, {2, 2}), kept_p = s.tensor(DType::F32, {2, 2});
    const Tensor dropped = s.tensor(DType::I64, {1});
    return s.error_of([&](Stream& stream) {
      if (operation == "count_experts") {
        count_experts(stream, counts, experts, {});
      } else {
        const Keep keep = Keep::MostProbable;
        drop_over_capacity_forward(stream, kept_p, kept, dropped, p, experts, 5, 1, keep);
      }
    });
  };
  for (const char* operation : {"count_experts", "drop_over_capacity_forward"}) {
    EXPECT_EQ(error_of(operation, 3), "none");
    EXPECT_EQ(error_of(operation, 5), own_fault(operation, "expert 5 of 5"));
    EXPECT_EQ(error_of(operation, -1), own_fault(operation, "expert -1 of 5"));
  }
}

INSTANTIATE_TEST_SUITE_P(Capacity,
                         CapacityOn,
                         testing::ValuesIn(devices::all_devices()),
                         device_name);

}  // namespace capacity_test
}  // namespace weft::kernels
