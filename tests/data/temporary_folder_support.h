// Separate folder for each test, removed when the test ends.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace weft::data {

class TemporaryFolder : public ::testing::Test {
 protected:
  TemporaryFolder() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    dir_ = std::filesystem::path(::testing::TempDir()) /
           (std::string("weft_data_") + info->test_suite_name() + "_" + info->name());
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
  }
  ~TemporaryFolder() override { std::filesystem::remove_all(dir_); }

  std::filesystem::path dir_;
};

}  // namespace weft::data
