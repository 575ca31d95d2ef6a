// Compressed traces: read normally, bounded, and refused with a reason if damaged.
#include "weft/trace/chrome/gunzip.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/trace/chrome/chrome_read.h"

namespace weft::trace {
namespace gunzip_test {

// One member of a gzip file.
std::string packed(const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, content.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

class PackedTrace : public ::testing::Test {
 protected:
  ~PackedTrace() override { std::filesystem::remove(path_); }

  const std::filesystem::path& file(const std::string& bytes) const {
    base::write_whole(path_, bytes);
    return path_;
  }
  // Error of reading the trace; empty: none.
  std::string refusal(const std::string& bytes) const {
    try {
      read_chrome(file(bytes));
      return "";
    } catch (const base::ConfigError& error) {
      return error.what();
    }
  }

  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / base::text("weft_packed_{}.json.gz", ::getpid());
};

std::string kernels(int count) {
  std::string all = "[";
  for (int i = 0; i < count; ++i) {
    all += base::text(
        R"({}{{"ph":"X","cat":"kernel","name":"gemm {}","pid":0,"tid":7,"ts":{},"dur":5}})",
        i == 0 ? "" : ",",
        i,
        10 * i);
  }
  return all + "]";
}

TEST_F(PackedTrace, IsReadAsTheTraceInIt) {
  std::uint64_t last = 0, all = 0;
  const std::string bytes = packed(kernels(300));
  const ChromeTrace trace = read_chrome(file(bytes), [&](std::uint64_t read, std::uint64_t of) {
    last = read;
    all = of;
  });
  EXPECT_EQ(trace.events, 300);
  ASSERT_TRUE(trace.devices);
  EXPECT_EQ(trace.devices->devices[0].kernels.size(), 300u);
  EXPECT_EQ(last, bytes.size()) << "progress is told in bytes of the file";
  EXPECT_EQ(all, bytes.size());
}

TEST_F(PackedTrace, OfSeveralMembersIsReadWhole) {
  const std::string whole = kernels(20), half = whole.substr(0, 400);
  EXPECT_EQ(read_chrome(file(packed(half) + packed(whole.substr(400)))).events, 20);
}

TEST_F(PackedTrace, ThatIsCutOffOrDamagedSaysSo) {
  const std::string bytes = packed(kernels(200));
  for (const std::size_t length : {bytes.size() / 2, bytes.size() - 1, std::size_t{12}}) {
    const std::string why = refusal(bytes.substr(0, length));
    EXPECT_NE(why.find(base::text("ends after {} bytes", length)), why.npos) << why;
    EXPECT_NE(why.find(path_.filename().string()), why.npos) << why;
  }
  std::string damaged = bytes;
  damaged[damaged.size() / 2] ^= 0x55;
  EXPECT_NE(refusal(damaged).find("damaged"), std::string::npos) << refusal(damaged);
  EXPECT_NE(refusal(bytes + "and more").find("damaged"), std::string::npos);
}

// A megabyte of blanks compresses to a thousandth: enough members to exceed the bound.
TEST_F(PackedTrace, ThatUnpacksToMuchMoreThanItIsIsRefused) {
  const std::string member = packed(std::string(1u << 20, ' '));
  std::string bomb;
  for (std::uint64_t i = 0; i <= kAlwaysRead >> 20; ++i) bomb += member;
  const base::InputFile input(file(bomb));
  Gunzip gunzip(input);
  std::string out(1u << 20, '\0');
  std::uint64_t read = 0;
  EXPECT_THROW(while (const std::size_t got = gunzip.read(out)) read += got, base::ConfigError);
  EXPECT_LE(read, kAlwaysRead);
}

}  // namespace gunzip_test
}  // namespace weft::trace
