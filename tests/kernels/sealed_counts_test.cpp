#include "tests/kernels/conformance_support.h"
#include "tests/kernels/scratch_support.h"
#include "weft/base/sealed_count.h"
#include "weft/base/text.h"
#include "weft/tensor/transfer.h"

namespace weft::kernels {
namespace sealed_counts_test {

using Numbers = std::vector<std::int64_t>;  // exact, unlike doubles

// Counts of a member: small, large, and the extremes.
Numbers counts_of(std::int64_t member, std::int64_t n) {
  Numbers counts;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t large = base::kLargestSealable - (i + member) * 1'000'003;
    counts.push_back(i % 3 == 0 ? large : (i * 7 + member) % 50);
  }
  if (n > 0) counts.front() = 0;
  if (n > 1) counts.back() = base::kLargestSealable;
  return counts;
}

Numbers sealed(const Numbers& counts, std::int64_t member) {
  Numbers all;
  for (const std::int64_t count : counts) {
    all.push_back(base::seal(count, member, std::ssize(all)));
  }
  return all;
}

// Seals the counts of several members, and opens them.
Case case_of(std::int64_t members, std::int64_t n) {
  Values counts;
  for (std::int64_t member = 0; member < members; ++member) {
    for (const std::int64_t count : counts_of(member, n)) counts.push_back(double(count));
  }
  const Shape shape{members, n};
  return {base::text("seal_and_open_{}x{}", members, n),
          {output("table", DType::I64, shape), input("counts", DType::I64, shape, counts)},
          [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
            copy(stream, a[0], a[1]);
            for (std::int64_t member = 0; member < members; ++member) {
              seal_counts(stream, a[0].rows(member, 1).view({n}), member);
            }
            open_counts(stream, a[0]);
          },
          [=](const std::vector<Argument>&) { return std::vector{whole(0, counts, 0)}; }};
}

INSTANTIATE_TEST_SUITE_P(
    SealedCounts,
    Conformance,
    testing::ValuesIn(on_devices({case_of(1, 1), case_of(2, 0), case_of(2, 4), case_of(5, 700)})),
    case_name);

class SealedCountsOn : public testing::TestWithParam<DeviceKind> {
 protected:
  // Error of opening the counts of two members, changed in flight.
  std::string open_error(const std::function<void(Numbers&)>& change) {
    Scratch s(GetParam());
    Numbers numbers = sent();
    change(numbers);
    const Tensor table = s.tensor(DType::I64, {2, 4});
    tensor::write<std::int64_t>(s.stream(), table, numbers);
    return s.error_of([&](Stream& stream) { open_counts(stream, table); });
  }
  static Numbers sent() {
    Numbers numbers = sealed({0, 7, 7, 1'000'000'000'000}, 0);
    const Numbers second = sealed({3, 0, 0, 0}, 1);
    numbers.insert(numbers.end(), second.begin(), second.end());
    return numbers;
  }
};

std::string damaged(int place, int member, std::int64_t number) {
  return outside_fault("open_counts",
                       base::text("number {} of the counts of member {} arrived damaged ({:#x}): "
                                  "the transport between the ranks loses or changes bytes",
                                  place,
                                  member,
                                  static_cast<std::uint64_t>(number)));
}

TEST_P(SealedCountsOn, HaveTheSameCodeOnEveryDevice) {
  for (const std::int64_t member : {0, 3, 4095}) {
    Scratch s(GetParam());
    const Numbers counts = counts_of(member, 700);
    const Tensor own = s.tensor(DType::I64, {700});
    tensor::write<std::int64_t>(s.stream(), own, counts);
    seal_counts(s.stream(), own, member);
    EXPECT_EQ(tensor::read<std::int64_t>(s.stream(), own), sealed(counts, member)) << member;
  }
}

TEST_P(SealedCountsOn, OpenAsTheyWere) {
  Scratch s(GetParam());
  const Tensor wide = s.filled(DType::I64, {2, 6}, -1), table = wide.columns(1, 4);
  Numbers numbers = sent();
  for (const std::int64_t at : {0, 5, 6, 11}) numbers.insert(numbers.begin() + at, -1);
  tensor::write<std::int64_t>(s.stream(), wide, numbers);
  open_counts(s.stream(), table);
  EXPECT_EQ(tensor::read<std::int64_t>(s.stream(), wide),
            (Numbers{-1, 0, 7, 7, 1'000'000'000'000, -1, -1, 3, 0, 0, 0, -1}));
}

TEST_P(SealedCountsOn, AreNotOnesOfAnotherPlaceOrMember) {
  const Numbers was = sent();
  EXPECT_EQ(open_error([](Numbers&) {}), "none");
  EXPECT_EQ(open_error([](Numbers& n) { n[2] = n[1]; }), damaged(2, 0, was[1]));
  EXPECT_EQ(open_error([](Numbers& n) { n[6] = n[5]; }), damaged(2, 1, was[5]));
  EXPECT_EQ(open_error([](Numbers& n) { n[0] = n[5]; }), damaged(0, 0, was[5]));
  EXPECT_EQ(open_error([](Numbers& n) { n[4] = n[0]; }), damaged(0, 1, was[0]));
}

TEST_P(SealedCountsOn, HaveNoBitThatMayChange) {
  for (int bit = 0; bit < 64; ++bit) {
    const auto flipped = [&](std::int64_t number) {
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(number) ^ std::uint64_t{1}
                                                                                << bit);
    };
    EXPECT_EQ(open_error([&](Numbers& n) { n[6] = flipped(n[6]); }),
              damaged(2, 1, flipped(sent()[6])))
        << bit;
  }
}

TEST_P(SealedCountsOn, CountsWithoutRoomForACodeAreNotSealed) {
  for (const std::int64_t wrong : {std::int64_t{-1}, base::kLargestSealable + 1}) {
    Scratch s(GetParam());
    const Tensor own = s.tensor(DType::I64, {3}, {5, double(wrong), 6});
    EXPECT_EQ(s.error_of([&](Stream& stream) { seal_counts(stream, own, 2); }),
              own_fault("seal_counts", base::text("count {} has no room for its code", wrong)));
  }
}

INSTANTIATE_TEST_SUITE_P(SealedCounts,
                         SealedCountsOn,
                         testing::ValuesIn(devices::all_devices()),
                         device_name);

}  // namespace sealed_counts_test
}  // namespace weft::kernels
