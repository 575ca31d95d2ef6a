#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/model/moe/layer_support.h"
#include "weft/base/error.h"
#include "weft/base/random.h"
#include "weft/base/text.h"
#include "weft/model/moe/sorting.h"

namespace weft::model {
namespace dispatcher_test {

using config::Dispatcher;

// k distinct random experts per token, ascending.
std::vector<std::int32_t> random_choices(std::int64_t tokens,
                                         std::int64_t k,
                                         std::int64_t experts) {
  std::vector<std::int32_t> all;
  for (std::int64_t t = 0; t < tokens; ++t) {
    std::vector<std::pair<double, std::int32_t>> drawn;
    for (std::int64_t e = 0; e < experts; ++e) {
      drawn.emplace_back(base::uniform(77, static_cast<std::uint64_t>(t * experts + e)),
                         static_cast<std::int32_t>(e));
    }
    std::ranges::sort(drawn);
    std::vector<std::int32_t> chosen;
    for (std::int64_t j = 0; j < k; ++j)
      chosen.push_back(drawn[static_cast<std::size_t>(j)].second);
    std::ranges::sort(chosen);
    all.insert(all.end(), chosen.begin(), chosen.end());
  }
  return all;
}

LayerCase random_case(std::string name,
                      std::vector<std::int64_t> tokens,
                      std::int64_t experts,
                      std::int64_t k) {
  LayerCase layer{.name = std::move(name), .tokens = std::move(tokens), .experts = experts, .k = k};
  layer.choices = random_choices(layer.all_tokens(), k, experts);
  return layer;
}

// Possible routings, for any dispatcher.
std::vector<LayerCase> routings() {
  std::vector<LayerCase> all{
      random_case("TwoRanks", {9, 9}, 8, 3),
      random_case("FourRanks", {16, 16, 16, 16}, 8, 3),
      random_case("EightRanks", {6, 6, 6, 6, 6, 6, 6, 6}, 16, 4),
      random_case("UnevenTokens", {3, 11, 0, 6}, 8, 2),
      random_case("EveryExpertChosen", {5, 5, 5, 5}, 4, 4),
      random_case("OneExpertARank", {7, 7, 7, 7}, 4, 2),
      random_case("OneRank", {12}, 8, 2),
  };
  LayerCase one = random_case("AllToOneRank", {6, 6, 6, 6}, 8, 2);
  for (std::size_t i = 0; i < one.choices.size(); i += 2) {
    one.choices[i] = 4;
    one.choices[i + 1] = 5;
  }
  all.push_back(one);
  LayerCase dropped = random_case("SomeDropped", {8, 8, 8, 8}, 8, 3);
  for (std::size_t i = 0; i < dropped.choices.size(); ++i) {
    if (i % 4 == 1 || (i >= 24 && i < 30)) dropped.choices[i] = -1;  // two tokens completely
  }
  all.push_back(dropped);
  return all;
}

// Each routing with each dispatcher that supports its number of ranks.
std::vector<LayerCase> cases() {
  std::vector<LayerCase> all;
  for (const LayerCase& routing : routings()) {
    const auto add = [&](const std::string& word, Dispatcher dispatcher, int per_machine) {
      LayerCase layer = routing;
      layer.name += word;
      layer.dispatcher = dispatcher;
      layer.per_machine = per_machine;
      all.push_back(layer);
    };
    add("AllToAll", Dispatcher::AllToAll, 0);
    add("AllGather", Dispatcher::AllGather, 0);
    add("DeepEp", Dispatcher::Flex, 0);
    for (const int n : {1, 2, 4, 8}) {
      if (routing.ranks() % n == 0) add(base::text("HybridEp{}", n), Dispatcher::Flex, n);
    }
  }
  return all;
}

// Variants whose experts two ranks share, or all.
std::vector<LayerCase> cut_cases() {
  std::vector<LayerCase> all;
  for (const LayerCase& whole : cases()) {
    for (const int shards : {2, 4}) {
      if (whole.ranks() % shards != 0) continue;
      LayerCase layer = whole;
      layer.name += base::text("Shards{}", shards);
      layer.shards = shards;
      all.push_back(layer);
    }
  }
  return all;
}

void expect_as_on_one_rank(const LayerOutcome& got, const LayerOutcome& want) {
  EXPECT_LE(relative_error(got.y, want.y), 1e-6);
  EXPECT_LE(relative_error(got.dx, want.dx), 1e-5);
  EXPECT_LE(relative_error(got.dp, want.dp), 1e-5);
  EXPECT_LE(relative_error(got.dfc1, want.dfc1), 1e-5);
  EXPECT_LE(relative_error(got.dfc2, want.dfc2), 1e-5);
}

class EveryDispatcher : public ::testing::TestWithParam<LayerCase> {};

TEST_P(EveryDispatcher, ComputesWhatOneRankDoes) {
  expect_as_on_one_rank(run_layer(GetParam()), run_on_one_rank(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Layer, EveryDispatcher, ::testing::ValuesIn(cases()), [](const auto& of) {
  return of.param.name;
});

INSTANTIATE_TEST_SUITE_P(CutExperts,
                         EveryDispatcher,
                         ::testing::ValuesIn(cut_cases()),
                         [](const auto& of) { return of.param.name; });

// Keeps the first `capacity` slots of each expert and rank.
void drop_beyond(LayerCase& layer, std::int64_t capacity) {
  std::int64_t first = 0;
  for (const std::int64_t tokens : layer.tokens) {
    std::vector<std::int64_t> taken(static_cast<std::size_t>(layer.experts));
    for (std::int64_t i = first * layer.k; i < (first + tokens) * layer.k; ++i) {
      std::int32_t& expert = layer.choices[static_cast<std::size_t>(i)];
      if (++taken[static_cast<std::size_t>(expert)] > capacity) expert = -1;
    }
    first += tokens;
  }
}

TEST(DropAndPad, IsTheUnpaddedRunOfTheKeptTokens) {
  for (const int per_machine : {-1, 0, 1, 2, 4}) {
    LayerCase layer = random_case("padded", {12, 12, 12, 12}, 8, 2);
    layer.dispatcher = per_machine < 0    ? Dispatcher::AllToAll
                       : per_machine == 0 ? Dispatcher::AllGather
                                          : Dispatcher::Flex;
    layer.per_machine = std::max(0, per_machine);
    drop_beyond(layer, 3);
    layer.capacity = 1;  // 12 * 2 / 8 rows per expert
    ASSERT_GT(std::ranges::count(layer.choices, -1), 0);
    for (const int shards : {1, 2}) {
      layer.shards = shards;
      expect_as_on_one_rank(run_layer(layer), run_on_one_rank(layer));
    }
  }
}

TEST(RowBudget, WhereItIsEnoughTheBitsAreThoseOfARunWithoutOne) {
  for (const int per_machine : {1, 2, 4}) {
    LayerCase layer = random_case("budget", {10, 10, 10, 10}, 8, 3);
    layer.dispatcher = Dispatcher::Flex;
    layer.per_machine = per_machine;
    layer.shards = per_machine == 2 ? 2 : 1;
    const LayerOutcome free = run_layer(layer);
    layer.budget = 2;
    const LayerOutcome bounded = run_layer(layer);
    EXPECT_EQ(bounded.overflow, 0);
    EXPECT_EQ(bounded.y, free.y);
    EXPECT_EQ(bounded.dx, free.dx);
    EXPECT_EQ(bounded.dp, free.dp);
    EXPECT_EQ(bounded.dfc1, free.dfc1);
    EXPECT_EQ(bounded.dfc2, free.dfc2);
  }
}

TEST(RowBudget, WhereItIsTooSmallEveryRankSaysSo) {
  for (const int per_machine : {1, 2, 4}) {
    LayerCase layer = random_case("overflow", {10, 10, 10, 10}, 8, 3);
    layer.dispatcher = Dispatcher::Flex;
    layer.per_machine = per_machine;
    layer.budget = 0.5;
    EXPECT_EQ(run_layer(layer).overflow, 4);
  }
}

// Communicator that changes the gathered counts for its member.
class Faulty final : public comm::Communicator {
 public:
  using Stream = tensor::Stream;
  using Change = std::function<void(std::span<std::int64_t>)>;

  Faulty(comm::Communicator& real, Change change) : real_(real), change_(std::move(change)) {}

  const std::string& name() const override { return real_.name(); }
  int rank() const override { return real_.rank(); }
  const std::vector<int>& members() const override { return real_.members(); }
  void all_to_all(Stream& stream,
                  Tensor receive,
                  Tensor send,
                  comm::RowCounts in,
                  comm::RowCounts out,
                  comm::Content content) override {
    real_.all_to_all(stream, receive, send, in, out, content);
  }
  void all_to_all_counted(Stream& stream,
                          Tensor receive,
                          Tensor in,
                          Tensor send,
                          Tensor out,
                          comm::Content content) override {
    real_.all_to_all_counted(stream, receive, in, send, out, content);
  }
  void all_gather(Stream& stream, Tensor receive, Tensor send, comm::Content content) override {
    real_.all_gather(stream, receive, send, content);
    if (receive.dtype() != DType::I64) return;
    auto* data = receive.data<std::int64_t>(stream);
    const auto n = static_cast<std::size_t>(receive.elements());
    auto* at = reinterpret_cast<std::byte*>(data);
    stream.enqueue_host("fault",
                        tensor::WorkClass::Memory,
                        [=, this](tensor::Transfers& transfers) {
                          std::vector<std::int64_t> numbers(n);
                          auto* copy = reinterpret_cast<std::byte*>(numbers.data());
                          transfers.copy(copy, at, receive.bytes());
                          change_(numbers);
                          transfers.copy(at, copy, receive.bytes());
                        });
  }
  void reduce_scatter(Stream& stream, Tensor receive, Tensor send, comm::Content content) override {
    real_.reduce_scatter(stream, receive, send, content);
  }
  void all_reduce(Stream& stream, Tensor data, comm::Reduce reduce) override {
    real_.all_reduce(stream, data, reduce);
  }
  void broadcast(Stream& stream, Tensor data, int root) override {
    real_.broadcast(stream, data, root);
  }
  void send(Stream& stream, Tensor data, int peer) override { real_.send(stream, data, peer); }
  void receive(Stream& stream, Tensor data, int peer) override {
    real_.receive(stream, data, peer);
  }
  void barrier(Stream& stream) override { real_.barrier(stream); }
  std::map<comm::Operation, comm::Traffic> traffic() const override { return real_.traffic(); }
  std::vector<comm::Sent> sent() const override { return real_.sent(); }

 private:
  comm::Communicator& real_;
  const Change change_;
};

struct Fault {
  std::string name;
  Faulty::Change change;
};

// Any change is an error, whether or not this rank uses the number.
TEST(CorruptedCounts, EndTheRunWithAnErrorOnEveryDispatcher) {
  std::vector<Fault> faults{
      {"zeros", [](std::span<std::int64_t> all) { std::ranges::fill(all, 0); }},
      {"reversed", [](std::span<std::int64_t> all) { std::ranges::reverse(all); }},
      {"two swapped", [](std::span<std::int64_t> all) { std::swap(all[0], all[1]); }},
      {"another's", [](std::span<std::int64_t> all) { all[0] = all[all.size() / 2]; }},
      {"shifted", [](std::span<std::int64_t> all) { std::ranges::rotate(all, all.begin() + 1); }},
  };
  for (const std::size_t place : {0, 1, 5, 7}) {
    const auto change = [&](std::string name, const std::function<std::int64_t(std::int64_t)>& to) {
      faults.push_back({base::text("number {} {}", place, name),
                        [=](std::span<std::int64_t> all) { all[place] = to(all[place]); }});
    };
    change("negative", [](std::int64_t) { return -3; });
    change("huge", [](std::int64_t) { return std::int64_t{1} << 60; });
    change("one more", [](std::int64_t n) { return n + 1; });
    change("one less", [](std::int64_t n) { return n - 1; });
    change("a bit", [](std::int64_t n) { return n ^ (std::int64_t{1} << 33); });
  }
  // Two ranks per machine, then with a row budget: counts that the host never sees.
  for (const int per_machine : {-2, -1, 0, 2, 12}) {
    for (const Fault& fault : faults) {
      LayerCase layer = random_case(fault.name, {10, 10, 10, 10}, 8, 3);
      layer.dispatcher = per_machine == -2   ? Dispatcher::AllToAll
                         : per_machine == -1 ? Dispatcher::AllGather
                                             : Dispatcher::Flex;
      layer.per_machine = std::max(0, per_machine % 10);
      if (per_machine > 10) layer.budget = 2;
      std::mutex mutex;
      std::vector<std::unique_ptr<Faulty>> taps;
      const Tap tap = [&](comm::Communicator& group) -> comm::Communicator& {
        if (group.rank() != 1 || group.name() != "ep") return group;
        const std::lock_guard lock(mutex);
        taps.push_back(std::make_unique<Faulty>(group, fault.change));
        return *taps.back();
      };
      try {
        run_layer(layer, tap);
        ADD_FAILURE() << fault.name << " " << per_machine << " ran to the end";
      } catch (const base::SystemError& error) {
        EXPECT_NE(std::string(error.what()).find("arrived damaged"), std::string::npos)
            << error.what();
      }
    }
  }
}

TEST(AnnouncedRows, AreBoundedByWhatARankCanHave) {
  EXPECT_NO_THROW(check_announced(1, 0, 4));
  EXPECT_NO_THROW(check_announced(1, 4, 4));
  EXPECT_THROW(check_announced(1, 5, 4), base::SystemError);
  EXPECT_THROW(check_announced(1, -1, 4), base::SystemError);
}

// Rows that leave a rank by its tokens' choices: the formula of the byte counts.
struct LeavingRows {
  std::int64_t inside = 0, between = 0;  // within the sender's machine; to other machines
};

LeavingRows leaving(const LayerCase& layer, int rank, int per_machine) {
  std::int64_t first = 0;
  for (int i = 0; i < rank; ++i) first += layer.tokens[static_cast<std::size_t>(i)];
  const std::int64_t local = layer.experts / layer.ranks();
  const int own_machine = rank / per_machine;
  LeavingRows rows;
  for (std::int64_t t = first; t < first + layer.tokens[static_cast<std::size_t>(rank)]; ++t) {
    std::vector<std::int64_t> to;
    for (std::int64_t j = 0; j < layer.k; ++j) {
      to.push_back(layer.choices[static_cast<std::size_t>(t * layer.k + j)] / local);
    }
    if (layer.dispatcher == Dispatcher::Flex) {
      to.erase(std::unique(to.begin(), to.end()), to.end());
    }
    for (const std::int64_t owner : to) {
      if (owner == rank) continue;
      (owner / per_machine == own_machine ? rows.inside : rows.between) += 1;
    }
  }
  return rows;
}

// Rows forwarded by the middle rank, and rows that cross machines once.
LeavingRows leaving_in_two_hops(const LayerCase& layer, int rank) {
  const int n = layer.per_machine, machine = rank / n, index = rank % n;
  const std::int64_t local = layer.experts / layer.ranks();
  LeavingRows rows;
  std::int64_t t = 0;
  for (int source = 0; source < layer.ranks(); ++source) {
    for (std::int64_t i = 0; i < layer.tokens[static_cast<std::size_t>(source)]; ++i, ++t) {
      std::vector<std::int64_t> owners, machines;
      for (std::int64_t j = 0; j < layer.k; ++j) {
        owners.push_back(layer.choices[static_cast<std::size_t>(t * layer.k + j)] / local);
        machines.push_back(owners.back() / n);
      }
      owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
      machines.erase(std::unique(machines.begin(), machines.end()), machines.end());
      if (source == rank) {
        rows.between +=
            std::ranges::count_if(machines, [&](std::int64_t to) { return to != machine; });
      }
      if (source % n != index) continue;  // another rank of this machine forwards it
      rows.inside += std::ranges::count_if(owners, [&](std::int64_t owner) {
        return owner / n == machine && owner != rank;
      });
    }
  }
  return rows;
}

// Forward and backward: rows go out twice (dispatch, combine's gradient) and back twice,
// probabilities once each way, choices out once.
TEST(Bytes, CountedEqualTheFormulaToTheByte) {
  for (const LayerCase& layer : cases()) {
    if (layer.dispatcher == Dispatcher::AllGather || layer.ranks() == 1) continue;
    if (layer.name.starts_with("SomeDropped")) continue;
    const LayerOutcome outcome = run_layer(layer);
    const bool flex = layer.dispatcher == Dispatcher::Flex;
    const int per_machine = layer.per_machine > 0 ? layer.per_machine : 1;
    const std::int64_t g = layer.ranks(), machines = g / per_machine;
    const std::int64_t numbers = flex ? machines + (per_machine > 1 ? g : 0) + g : layer.experts;
    const auto hold =
        [&](std::int64_t out, std::int64_t back, std::int64_t peers, comm::Sent sent) {
          EXPECT_EQ(sent.payload, 2 * (out + back) * layer.hidden * 4) << layer.name;
          EXPECT_EQ(sent.probabilities, (out + back) * (flex ? layer.k : 1) * 4) << layer.name;
          EXPECT_EQ(sent.metadata, (flex ? out * layer.k * 4 : 0) + peers * numbers * 8)
              << layer.name;
        };
    const auto rows_out = [&](int rank) {
      return layer.per_machine > 0 ? leaving_in_two_hops(layer, rank)
                                   : leaving(layer, rank, per_machine);
    };
    // Returning rows leave the ranks that received them: compares sums over all ranks, by kind of
    // link.
    LeavingRows all;
    comm::Sent inside, between;
    for (int rank = 0; rank < layer.ranks(); ++rank) {
      const LeavingRows out = rows_out(rank);
      all.inside += out.inside;
      all.between += out.between;
      comm::Sent own_inside, own_between;
      for (int to = 0; to < layer.ranks(); ++to) {
        const comm::Sent& sent =
            outcome.sent[static_cast<std::size_t>(rank)][static_cast<std::size_t>(to)];
        const bool near = to / per_machine == rank / per_machine;
        for (comm::Sent* sum : {near ? &own_inside : &own_between, near ? &inside : &between}) {
          sum->payload += sent.payload;
          sum->probabilities += sent.probabilities;
          sum->metadata += sent.metadata;
        }
      }
      // Choices only go out: they distinguish each rank's rows.
      EXPECT_EQ(own_inside.metadata - (per_machine - 1) * numbers * 8,
                flex ? out.inside * layer.k * 4 : 0)
          << layer.name << " rank " << rank;
      EXPECT_EQ(own_between.metadata - (g - per_machine) * numbers * 8,
                flex ? out.between * layer.k * 4 : 0)
          << layer.name << " rank " << rank;
    }
    hold(all.inside, all.inside, g * (per_machine - 1), inside);
    hold(all.between, all.between, g * (g - per_machine), between);
  }
}

TEST(Bytes, AllGatherSendsEveryTokenToEveryRankWhateverItChose) {
  LayerCase layer = random_case("gathered", {9, 9, 9, 9}, 8, 3);
  layer.dispatcher = Dispatcher::AllGather;
  const LayerOutcome outcome = run_layer(layer);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    for (std::size_t to = 0; to < 4; ++to) {
      const comm::Sent& sent = outcome.sent[rank][to];
      if (to == rank) {
        EXPECT_EQ(sent.total(), 0);
        continue;
      }
      EXPECT_EQ(sent.payload, 4 * 9 * layer.hidden * 4);
      EXPECT_EQ(sent.probabilities, 2 * 9 * layer.k * 4);
      EXPECT_EQ(sent.metadata, 9 * layer.k * 4 + 4 * 8);
    }
  }
}

}  // namespace dispatcher_test
}  // namespace weft::model
