// CPU time of the tests: with WEFT_TEST_TIMES=FILE every test adds a line to the file, its CPU
// seconds, its seconds and its name. `sort -rn FILE` shows the most expensive ones.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>

namespace weft {

// CPU seconds of this process and of those that it started and waited for.
inline double cpu_seconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage use{};
    ::getrusage(who, &use);
    for (const timeval& time : {use.ru_utime, use.ru_stime}) {
      sum += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    }
  }
  return sum;
}

class TestTimes : public testing::EmptyTestEventListener {
 public:
  explicit TestTimes(const char* file) : file_(file) {}

  void OnTestStart(const testing::TestInfo&) override { begin_ = cpu_seconds(); }
  void OnTestEnd(const testing::TestInfo& test) override {
    std::FILE* const file = std::fopen(file_, "a");
    if (file == nullptr) return;
    std::fprintf(file,
                 "%8.3f %8.3f %s.%s\n",
                 cpu_seconds() - begin_,
                 1e-3 * static_cast<double>(test.result()->elapsed_time()),
                 test.test_suite_name(),
                 test.name());
    std::fclose(file);
  }

 private:
  const char* file_;
  double begin_ = 0;
};

inline void note_test_times() {
  const char* const file = std::getenv("WEFT_TEST_TIMES");
  if (file != nullptr) {
    testing::UnitTest::GetInstance()->listeners().Append(new TestTimes(file));
  }
}

}  // namespace weft
