// Edge cases of the products, in the library that computes them on this machine.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/kernels/cpu/gemm/blas.h"
#include "weft/kernels/onednn_report.h"

namespace weft::kernels::cpu {
namespace sgemm_test {

using Floats = std::vector<float>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Matrix with `gap` floats behind each row.
struct Matrix {
  std::int64_t rows = 0, columns = 0, stride = 0;
  Floats data;

  Matrix(std::int64_t of_rows, std::int64_t of_columns, std::int64_t gap, float value)
      : rows(of_rows), columns(of_columns), stride(of_columns + gap) {
    data.assign(static_cast<std::size_t>(rows * stride), value);
  }
  float& at(std::int64_t r, std::int64_t c) {
    return data[static_cast<std::size_t>(r * stride + c)];
  }
};

// Values between -1 and 1; gaps are NaN, so that reading them shows.
Matrix drawn(std::int64_t rows, std::int64_t columns, std::int64_t gap, int seed) {
  Matrix result(rows, columns, gap, kNan);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      result.at(r, c) = static_cast<float>(std::sin(1.7 * double(r * columns + c) + seed));
    }
  }
  return result;
}

struct Case {
  std::int64_t m = 0, n = 0, k = 0, gap = 0;
  Transpose a = Transpose::No, b = Transpose::No;
  float alpha = 1, beta = 0;
};

void expect_right(const Case& of) {
  SCOPED_TRACE(testing::Message() << of.m << " x " << of.n << " x " << of.k << ", gap " << of.gap
                                  << (of.a == Transpose::Yes ? " T" : " N")
                                  << (of.b == Transpose::Yes ? "T" : "N") << ", alpha " << of.alpha
                                  << ", beta " << of.beta);
  const bool ta = of.a == Transpose::Yes, tb = of.b == Transpose::Yes;
  Matrix a = drawn(ta ? of.k : of.m, ta ? of.m : of.k, of.gap, 1);
  Matrix b = drawn(tb ? of.n : of.k, tb ? of.k : of.n, of.gap, 2);
  Matrix c(of.m, of.n, of.gap, of.beta == 0 ? kNan : 0.25f);
  sgemm(of.m,
        of.n,
        of.k,
        of.alpha,
        {a.data.data(), a.stride, of.a},
        {b.data.data(), b.stride, of.b},
        {c.data.data(), c.stride, of.beta});
  for (std::int64_t i = 0; i < of.m; ++i) {
    for (std::int64_t j = 0; j < of.n; ++j) {
      double want = 0;
      for (std::int64_t p = 0; p < of.k; ++p) {
        want += double(ta ? a.at(p, i) : a.at(i, p)) * double(tb ? b.at(j, p) : b.at(p, j));
      }
      want = of.alpha * want + (of.beta == 0 ? 0 : of.beta * 0.25);
      ASSERT_NEAR(c.at(i, j), want, 1e-6 * double(of.k + 1)) << i << ", " << j;
    }
    for (std::int64_t j = of.n; j < c.stride; ++j) {
      const float behind = c.at(i, j);
      ASSERT_TRUE(of.beta == 0 ? std::isnan(behind) : behind == 0.25f) << "behind row " << i;
    }
  }
}

TEST(Sgemm, IsRightInEveryFormAndTouchesNothingElse) {
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 1, 1},
                                {1, 70, 33},
                                {70, 1, 33},
                                {33, 70, 1},
                                {1, 1, 300},
                                {17, 5, 9},
                                {64, 128, 130},
                                {130, 48, 520}}) {
    for (const Transpose a : {Transpose::No, Transpose::Yes}) {
      for (const Transpose b : {Transpose::No, Transpose::Yes}) {
        for (const auto& [alpha, beta] :
             {std::pair{1.0f, 0.0f}, {1.0f, 1.0f}, {0.125f, 0.0f}, {-2.0f, 0.5f}}) {
          expect_right({m, n, k, 0, a, b, alpha, beta});
          expect_right({m, n, k, 7, a, b, alpha, beta});
        }
      }
    }
  }
}

// Reason for limiting oneDNN's calls: its kernels differ by shape, and overlap cuts rows
// differently.
TEST(Sgemm, OfOnednnHasBitsThatDependOnTheDepthAlone) {
  if (!onednn_report().why_not.empty()) GTEST_SKIP() << onednn_report().why_not;
  constexpr std::int64_t kRows = 160, kColumns = 264;
  for (const std::int64_t k : {1, 24, 100, 384, 400, 1024}) {
    for (const Transpose ta : {Transpose::No, Transpose::Yes}) {
      for (const Transpose tb : {Transpose::No, Transpose::Yes}) {
        const bool a_turned = ta == Transpose::Yes, b_turned = tb == Transpose::Yes;
        const Matrix a = drawn(a_turned ? k : kRows, a_turned ? kRows : k, 0, 1);
        const Matrix b = drawn(b_turned ? kColumns : k, b_turned ? k : kColumns, 3, 2);
        const Factor left{a.data.data(), a.stride, ta}, right{b.data.data(), b.stride, tb};
        const auto product = [&](std::int64_t m, std::int64_t n) {
          Matrix c(m, n, 0, 0.25f);
          sgemm(m, n, k, 1, left, right, {c.data.data(), n, 1});
          return c;
        };
        Matrix whole = product(kRows, kColumns);
        for (const std::int64_t m : {1, 2, 8, 15, 16, 17, 64, 150}) {
          for (const std::int64_t n : {1, 3, 15, 16, 17, 40, 128, 250}) {
            Matrix part = product(m, n);
            for (std::int64_t i = 0; i < m; ++i) {
              for (std::int64_t j = 0; j < n; ++j) {
                ASSERT_EQ(part.at(i, j), whole.at(i, j))
                    << m << " x " << n << " x " << k << (a_turned ? " T" : " N")
                    << (b_turned ? "T" : "N") << " at " << i << ", " << j;
              }
            }
          }
        }
      }
    }
  }
}

TEST(Sgemm, AProductWithoutRowsOrColumnsWritesNothing) {
  float c = kNan;
  sgemm(0, 3, 4, 1, {nullptr, 4}, {nullptr, 3}, {&c, 3, 0});
  sgemm(3, 0, 4, 1, {nullptr, 4}, {nullptr, 0}, {&c, 1, 0});
  EXPECT_TRUE(std::isnan(c));
}

TEST(Sgemm, AProductOverNothingIsZero) {
  Matrix assigned(3, 5, 2, kNan), added(3, 5, 2, 4.0f);
  for (const Transpose t : {Transpose::No, Transpose::Yes}) {
    sgemm(3, 5, 0, 1, {nullptr, 0, t}, {nullptr, 5, t}, {assigned.data.data(), 7, 0});
    sgemm(3, 5, 0, 1, {nullptr, 0, t}, {nullptr, 5, t}, {added.data.data(), 7, 1});
  }
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < 7; ++j) {
      EXPECT_TRUE(j < 5 ? assigned.at(i, j) == 0 : std::isnan(assigned.at(i, j)));
      EXPECT_EQ(added.at(i, j), 4.0f);
    }
  }
}

TEST(Sgemm, AStrideBeyondAnIntIsTakenOrRefused) {
  const std::int64_t far = 5'000'000'000;
  const Floats a{1, 2}, b{3, 4};
  float c = kNan;
  try {
    sgemm(1, 1, 2, 1, {a.data(), far}, {b.data(), far, Transpose::Yes}, {&c, far, 0});
  } catch (const base::InternalError&) {
    return;
  }
  EXPECT_EQ(c, 11.0f);
}

std::ptrdiff_t threads_of_process() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return std::distance(begin(all), end(all));
}

TEST(Sgemm, RunsOnTheThreadThatCallsAndHasTheSameBitsOnEach) {
  const Matrix a = drawn(640, 512, 0, 1), b = drawn(512, 768, 0, 2);
  const auto product = [&] {
    Matrix c(640, 768, 0, kNan);
    sgemm(640, 768, 512, 1, {a.data.data(), 512}, {b.data.data(), 768}, {c.data.data(), 768, 0});
    return c.data;
  };
  const Floats here = product();
  const std::ptrdiff_t threads = threads_of_process();
  std::ptrdiff_t beside = 0;
  Floats there;
  std::thread other([&] {
    there = product();
    beside = threads_of_process();
  });
  other.join();
  EXPECT_LE(beside, threads + 1);
  EXPECT_EQ(std::memcmp(here.data(), there.data(), here.size() * sizeof(float)), 0);
}

}  // namespace sgemm_test
}  // namespace weft::kernels::cpu
