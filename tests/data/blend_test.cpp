#include "weft/data/blend.h"

#include <gtest/gtest.h>

#include "tests/data/sequences_support.h"
#include "tests/data/temporary_folder_support.h"
#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::data {
namespace blend_test {

using Place = BlendOrder::Place;

// The rule, sample by sample.
std::vector<Place> by_the_rule(const std::vector<double>& weights, std::size_t samples) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  std::vector<std::uint64_t> taken(weights.size(), 0);
  std::vector<Place> places;
  for (std::size_t i = 0; i < samples; ++i) {
    std::size_t best = 0;
    double most = -1e300;
    for (std::size_t part = 0; part < weights.size(); ++part) {
      const volatile double due = weights[part] / sum * std::max(static_cast<double>(i), 1.0);
      const double behind = due - static_cast<double>(taken[part]);
      if (behind > most) {
        most = behind;
        best = part;
      }
    }
    places.push_back({.part = best, .sample = taken[best]++});
  }
  return places;
}

TEST(BlendOrder, GivesEachSampleToTheDataSetFurthestBehind) {
  const BlendOrder order({5, 3, 2});
  std::vector<std::size_t> parts;
  for (std::uint64_t i = 0; i < 7; ++i) parts.push_back(order.place(i).part);
  EXPECT_EQ(parts, (std::vector<std::size_t>{0, 1, 2, 0, 1, 0, 2}));
  const BlendOrder ties({1, 1});
  EXPECT_EQ(ties.place(0), (Place{.part = 0, .sample = 0}));
  EXPECT_EQ(ties.place(1), (Place{.part = 1, .sample = 0}));
}

TEST(BlendOrder, IsTheSameFromAnySampleOn) {
  const std::vector<double> weights{0.31, 0.007, 0.45, 0.2};
  const std::vector<Place> expected = by_the_rule(weights, 60000);
  const BlendOrder order(weights);
  for (const std::uint64_t sample : {59999u, 3u, 4095u, 4096u, 30000u, 8191u, 8192u, 0u, 41000u}) {
    EXPECT_EQ(order.place(sample), expected[sample]) << sample;
  }
  const BlendOrder resumed(weights);
  for (std::size_t i = 25000; i < expected.size(); ++i) {
    ASSERT_EQ(resumed.place(i), expected[i]) << i;
  }
}

// More samples than the stored states cover one by one.
TEST(BlendOrder, FindsSamplesFarOnAndThoseBeforeThem) {
  const BlendOrder order({2, 1}), other({2, 1});
  const Place far = order.place(9'000'000);
  EXPECT_NEAR(static_cast<double>(far.sample), far.part == 0 ? 6e6 : 3e6, 2);
  for (const std::uint64_t sample : {100'000u, 4'500'000u, 8'999'999u}) {
    EXPECT_EQ(order.place(sample), other.place(sample));
  }
  EXPECT_THROW(order.place(kMostBlendedSamples), base::ConfigError);
}

TEST(Blend, IsWeightsAndPathsOrPathsAlone) {
  const Blend weighed = parse_blend(std::vector<std::string>{"0.3", "a", "7e-1", "b", "0", "c"});
  EXPECT_EQ(weighed.paths, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(weighed.weights, (std::vector<double>{0.3, 0.7}));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"a"}, {"a", "b"}, {"a", "b", "c"}}) {
    EXPECT_EQ(parse_blend(words).paths, words);
    EXPECT_TRUE(parse_blend(words).weights.empty());
  }
}

TEST(Blend, ThatIsNoneIsRefused) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"-1", "a", "2", "b"},
                                                {"nan", "a", "2", "b"},
                                                {"inf", "a", "2", "b"},
                                                {"0", "a", "0", "b"},
                                                {"1", "a", "b", "c"},
                                                {"1", "a", "b"},
                                                std::vector<std::string>(513, "a")}) {
    EXPECT_THROW(parse_blend(words), base::ConfigError) << words.front();
  }
}

class BlendedData : public TemporaryFolder {
 protected:
  BlendedData() {
    write_sequences(at("a"), 20, 10);
    write_sequences(at("b"), 5, 10, 100);
  }
  std::string at(const std::string& name) const { return (dir_ / name).string(); }

  std::unique_ptr<Dataset> open(std::vector<std::string> blend,
                                const std::string& split = "") const {
    return open_dataset(
        {.kind = config::DataKind::Indexed, .blend = std::move(blend), .split = split},
        4,
        256,
        1);
  }
  static std::vector<std::int32_t> sample(const Dataset& dataset, Split split, std::uint64_t i) {
    std::vector<std::int32_t> tokens(5);
    dataset.read(split, i, tokens);
    return tokens;
  }
  // Number of the first samples that come from b.
  static int from_b(const Dataset& dataset, Split split, std::uint64_t samples) {
    int count = 0;
    for (std::uint64_t i = 0; i < samples; ++i) count += sample(dataset, split, i).front() >= 100;
    return count;
  }
};

TEST_F(BlendedData, IsReadByWeightInEverySplit) {
  const auto dataset = open({"0.25", at("a"), "0.75", at("b")}, "6,2,2");
  for (const Split split : {Split::Train, Split::Eval, Split::Test}) {
    EXPECT_EQ(from_b(*dataset, split, 400), 300) << word(split);
  }
  EXPECT_EQ(dataset->tokens(), 250u);
  EXPECT_EQ(dataset->samples(Split::Train), (120 - 1) / 4 + (30 - 1) / 4);
  const auto by_size = open({at("a"), at("b")}, "1");
  EXPECT_EQ(from_b(*by_size, Split::Train, 61), 12);  // 49 samples and 12
}

TEST_F(BlendedData, OfOneIsThatOne) {
  const auto blended = open({"3", at("a")});
  const auto alone = open_dataset({.kind = config::DataKind::Indexed, .path = at("a")}, 4, 256, 1);
  ASSERT_EQ(blended->samples(Split::Train), alone->samples(Split::Train));
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(sample(*blended, Split::Train, i), sample(*alone, Split::Train, i));
  }
}

TEST_F(BlendedData, WithoutFilesOrSamplesIsRefused) {
  EXPECT_THROW(open({"1", at("a"), "1", at("none")}), base::MissingInput);
  const auto dataset = open({at("a"), at("b")}, "19,1");
  EXPECT_EQ(dataset->samples(Split::Eval), 0u);  // b has no sequence for evaluation
  try {
    sample(*dataset, Split::Eval, 0);
    FAIL();
  } catch (const base::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find(at("b")), std::string::npos) << error.what();
  }
  EXPECT_THROW(open({at("a"), at("b")}, "1,99"), base::ConfigError);
  EXPECT_THROW(open_dataset({.blend = {at("a")}}, 4, 256, 1), base::ConfigError);
  EXPECT_THROW(
      open_dataset({.kind = config::DataKind::Indexed, .path = at("a"), .blend = {at("b")}},
                   4,
                   256,
                   1),
      base::ConfigError);
}

TEST_F(BlendedData, SplitsMayHaveDataOfTheirOwn) {
  const auto open_splits = [&](std::vector<std::string> splits, std::uint64_t seed = 1) {
    return open_dataset({.kind = config::DataKind::Indexed, .blend_per_split = std::move(splits)},
                        4,
                        256,
                        seed);
  };
  const std::string a = at("a"), b = at("b");
  const auto dataset = open_splits(
      {base::text("[0.25,{},0.75,{}]", a, b), base::text("[{}]", b), base::text("[{}]", a)});
  EXPECT_EQ(from_b(*dataset, Split::Train, 400), 300);
  EXPECT_EQ(from_b(*dataset, Split::Eval, 40), 40);
  EXPECT_EQ(from_b(*dataset, Split::Test, 40), 0);
  EXPECT_EQ(dataset->samples(Split::Eval), (50 - 1) / 4);  // whole data set, no part held out
  EXPECT_EQ(dataset->tokens(), 250u + 50 + 200);
  const auto other = open_splits({"[" + a + "]", "[" + b + "]", "[]"}, 2);
  EXPECT_EQ(sample(*other, Split::Eval, 3), sample(*dataset, Split::Eval, 3));
  EXPECT_EQ(other->samples(Split::Test), 0u);
  EXPECT_THROW(sample(*other, Split::Test, 0), base::ConfigError);
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"[a]", "[b]"}, {"[]", "[a]", "[b]"}, {"a", "[b]", "[c]"}}) {
    EXPECT_THROW(open_splits(wrong), base::ConfigError) << wrong.front();
  }
  EXPECT_THROW(open_dataset({.kind = config::DataKind::Indexed,
                             .path = a,
                             .blend_per_split = {"[" + a + "]", "[]", "[]"}},
                            4,
                            256,
                            1),
               base::ConfigError);
  EXPECT_TRUE(has_test_split({.kind = config::DataKind::Indexed, .split = "8,1,1"}));
  EXPECT_FALSE(has_test_split({.kind = config::DataKind::Indexed, .split = "9,1"}));
  EXPECT_FALSE(has_test_split({}));
}

}  // namespace blend_test
}  // namespace weft::data
