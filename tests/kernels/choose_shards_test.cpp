#include "tests/kernels/conformance_support.h"
#include "weft/base/text.h"

namespace weft::kernels {
namespace choose_shards_test {

struct Sizes {
  std::int64_t t, k, local, ranks, shards;
};

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// k experts per token, ascending; every fifth slot has none.
Values choices_of(const Sizes& s) {
  Values experts;
  const std::int64_t all = s.local * s.ranks;
  for (std::int64_t t = 0; t < s.t; ++t) {
    const std::int64_t skipped = t % (all - s.k + 1);
    for (std::int64_t j = 0; j < s.k; ++j) {
      const bool none = (t * s.k + j) % 5 == 3;
      experts.push_back(none ? -1.0 : double(j < t % (s.k + 1) ? j : j + skipped));
    }
  }
  return experts;
}

// Checks the definition: each slot's copies are at the places that the operation gives.
void expect_copies(const Sizes& s, const Values& experts, const Values& p, Arena& arena) {
  const Values chosen_p = arena.read(0), chosen = arena.read(1), copy = arena.read(2);
  std::vector<int> named(chosen.size(), 0);
  for (std::int64_t slot = 0; slot < s.t * s.k; ++slot) {
    const auto e = static_cast<std::int64_t>(experts[at(slot)]);
    for (std::int64_t shard = 0; shard < s.shards; ++shard) {
      const auto place = static_cast<std::int64_t>(copy[at(slot * s.shards + shard)]);
      ASSERT_EQ(place / (s.k * s.shards), slot / s.k) << "a copy stays with its token";
      ++named[at(place)];
      const std::int64_t rank = e / s.local * s.shards + shard;
      EXPECT_EQ(chosen[at(place)], e < 0 ? -1.0 : double(rank * s.local + e % s.local));
      EXPECT_EQ(chosen_p[at(place)], p[at(slot)]);
    }
  }
  for (const int times : named) EXPECT_EQ(times, 1);
  for (std::int64_t t = 0; t < s.t; ++t) {
    double last = -1;
    for (std::int64_t j = 0; j < s.k * s.shards; ++j) {
      const double number = chosen[at(t * s.k * s.shards + j)];
      if (number < 0) continue;
      EXPECT_GT(number, last) << "token " << t;
      last = number;
    }
  }
}

Case case_of(const Sizes& s) {
  const Shape slots{s.t, s.k}, chosen{s.t, s.k * s.shards};
  return {base::text("choose_shards_{}x{}_{}x{}_{}", s.t, s.k, s.local, s.ranks, s.shards),
          {output("chosen_p", DType::F32, chosen),
           output("chosen", DType::I32, chosen),
           output("copy", DType::I32, {s.t * s.k, s.shards}),
           input("p", DType::F32, slots, rounded(draw(1, slots), DType::F32)),
           input("experts", DType::I32, slots, choices_of(s))},
          [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
            choose_shards(stream,
                          a[0],
                          a[1],
                          a[2],
                          a[3],
                          a[4],
                          {.experts = s.local, .shards = s.shards});
          },
          // The test below checks values; the table checks only that all runs agree.
          [](const std::vector<Argument>&) { return std::vector<Expected>{}; }};
}

const std::vector<Sizes> kSizes{{0, 2, 2, 2, 2},
                                {1, 1, 1, 1, 3},
                                {40, 2, 4, 2, 2},
                                {41, 5, 2, 4, 2},
                                {33, 6, 3, 3, 4},
                                {3000, 8, 8, 4, 2}};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Sizes& s : kSizes) all.push_back(case_of(s));
  return all;
}

INSTANTIATE_TEST_SUITE_P(ChooseShards,
                         Conformance,
                         testing::ValuesIn(on_devices(cases())),
                         case_name);

TEST(ChooseShards, EveryShardOfAChosenExpertIsChosenOnceInOrderOfRanks) {
  for (const Sizes& s : kSizes) {
    for (const DeviceKind device : devices::all_devices()) {
      const auto test = std::make_shared<const Case>(case_of(s));
      const DeviceCase on{test, device};
      Arena arena(on, 1, Rows::Contiguous);
      arena.run();
      SCOPED_TRACE(test->name);
      expect_copies(s, test->arguments[4].values, test->arguments[3].values, arena);
    }
  }
}

}  // namespace choose_shards_test
}  // namespace weft::kernels
