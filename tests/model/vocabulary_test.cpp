// Compares embedding and head of tensor-parallel ranks that share the vocabulary with one rank.
#include "weft/model/vocabulary.h"

#include <gtest/gtest.h>

#include <mutex>

#include "tests/comm/bench_support.h"
#include "weft/base/random.h"
#include "weft/base/text.h"
#include "weft/model/embedding.h"
#include "weft/model/head.h"
#include "weft/tensor/transfer.h"

namespace weft::model {
namespace vocabulary_test {

constexpr std::int64_t kTokens = 12, kHidden = 6;
constexpr float kLossScale = 0.5f;

using Values = std::vector<float>;

Values draw(std::uint64_t key, std::int64_t count) {
  Values values(static_cast<std::size_t>(count));
  base::normals(key, 0, values);
  return values;
}

Values rows_of(const Values& all, std::int64_t first, std::int64_t count) {
  const auto begin = all.begin() + first * kHidden;
  return {begin, begin + count * kHidden};
}

// Micro-batch: tokens, labels, weights, and a gradient for the embedding.
struct Problem {
  std::int64_t vocabulary;
  Values x = draw(1, kTokens*kHidden), dx = draw(2, kTokens*kHidden);
  Values table = draw(3, vocabulary*kHidden), norm = draw(4, kHidden);
  std::vector<std::int32_t> ids = {}, labels = {};

  explicit Problem(std::int64_t words) : vocabulary(words) {
    for (std::int64_t t = 0; t < kTokens; ++t) {
      ids.push_back(static_cast<std::int32_t>(t * t % vocabulary));
      labels.push_back(t % 4 == 1 ? -100 : static_cast<std::int32_t>(t * 5 % vocabulary));
    }
  }
};

// Results for the whole micro-batch, with any number of ranks; 0 from an absent rank.
struct Outcome {
  Values embedded = Values(kTokens * kHidden), dx = Values(kTokens * kHidden);
  Values dtable, dhead, dnorm = Values(kHidden);
  std::vector<double> losses;  // per rank
};

class Rank {
 public:
  Rank(const config::ModelConfig& config, const Problem& problem, comm::Bench& bench)
      : config_(config),
        problem_(problem),
        bench_(bench),
        tp_(*bench.all),
        others_(other_ids(config, {.tp = bench.rank})),
        ids_(problem.vocabulary - others_.before - others_.behind),
        own_tokens_(kTokens / bench.world) {}

  void run(Outcome& outcome, std::mutex& mutex) {
    const Tensor embedded = embed();
    const Values own = tensor::read<float>(stream(), embedded);
    const Values dtable = embedding_gradient();
    HeadState state;
    const Tensor x = floats({own_tokens_, kHidden}, own_rows(problem_.x));
    const HeadWeights weights{.norm_D = trained({kHidden}, problem_.norm),
                              .head_VD = {.weight = trained({ids_, kHidden}, own_ids())}};
    const double loss = head_forward(state, weights, x);
    const Values dx = tensor::read<float>(stream(), head_backward(state, weights, x));
    const Values dhead = tensor::read<float>(stream(), weights.head_VD.weight.gradient);
    const Values dnorm = tensor::read<float>(stream(), weights.norm_D.gradient);

    const std::lock_guard lock(mutex);
    const std::int64_t token = bench_.rank * own_tokens_;
    std::ranges::copy(own, outcome.embedded.begin() + token * kHidden);
    std::ranges::copy(dx, outcome.dx.begin() + token * kHidden);
    std::ranges::copy(dtable, outcome.dtable.begin() + others_.before * kHidden);
    std::ranges::copy(dhead, outcome.dhead.begin() + others_.before * kHidden);
    for (std::size_t i = 0; i < dnorm.size(); ++i) outcome.dnorm[i] += dnorm[i];
    outcome.losses[static_cast<std::size_t>(bench_.rank)] = loss;
  }

 private:
  Stream& stream() { return *bench_.stream; }
  Values own_rows(const Values& of_tokens) const {
    return rows_of(of_tokens, bench_.rank * own_tokens_, own_tokens_);
  }
  Values own_ids() const { return rows_of(problem_.table, others_.before, ids_); }

  Tensor floats(Shape shape, const Values& values) {
    Tensor t(bench_.pool, DType::F32, shape, Tag::Activations);
    tensor::write<float>(stream(), t, values);
    return t;
  }
  Tensor zeros(Shape shape) {
    return floats(shape, Values(static_cast<std::size_t>(shape.elements())));
  }
  Weight trained(Shape shape, const Values& values) {
    return {.values = floats(shape, values), .gradient = zeros(shape)};
  }
  Tensor integers(const std::vector<std::int32_t>& values) {
    Tensor t(bench_.pool, DType::I32, {kTokens}, Tag::Activations);
    tensor::write<std::int32_t>(stream(), t, values);
    return t;
  }
  Context context() {
    return {.stream = stream(),
            .pool = bench_.pool,
            .config = config_,
            .loss_scale = kLossScale,
            .other_ids = others_};
  }

  // Work of the nodes between the model's functions.
  Tensor gathered(const Tensor& own) {
    Tensor all = zeros({own.dim(0) * tp_.size(), own.dim(1)});
    tp_.all_gather(stream(), all, own);
    return all;
  }
  Tensor scattered(const Tensor& all) {
    Tensor own = zeros({all.dim(0) / tp_.size(), all.dim(1)});
    tp_.reduce_scatter(stream(), own, all);
    return own;
  }

  Tensor embed() {
    Tensor x =
        embedding_forward(context(), trained({ids_, kHidden}, own_ids()), integers(problem_.ids));
    return scattered(x);
  }

  Values embedding_gradient() {
    Tensor dx = floats({own_tokens_, kHidden}, own_rows(problem_.dx));
    dx = gathered(dx);
    const Weight table = trained({ids_, kHidden}, own_ids());
    embedding_wgrad(context(), table, dx, integers(problem_.ids));
    return tensor::read<float>(stream(), table.gradient);
  }

  double head_forward(HeadState& state, const HeadWeights& weights, const Tensor& x) {
    const Tensor labels = integers(problem_.labels);
    const Tensor loss(bench_.pool, DType::F64, {1}, Tag::Activations);
    head_norm_forward(context(), state, weights, x);
    state.norm.y_TD = gathered(state.norm.y_TD);
    head_logits_forward(context(), state, weights, labels, kTokens - kTokens / 4);
    state.sums_T2 = gathered(state.sums_T2);
    head_loss_forward(context(), state, labels, loss);
    return tensor::read<double>(stream(), loss).front();
  }

  Tensor head_backward(HeadState& state, const HeadWeights& weights, const Tensor& x) {
    head_loss_dgrad(context(), state, weights, integers(problem_.labels), kTokens - kTokens / 4);
    head_logits_dgrad(context(), state, weights);
    state.norm.dy_TD = scattered(state.norm.dy_TD);
    Tensor dx = head_norm_dgrad(context(), state, weights, x);
    head_logits_wgrad(context(), state, weights);
    head_norm_wgrad(context(), state, weights, x);
    return dx;
  }

  const config::ModelConfig& config_;
  const Problem& problem_;
  comm::Bench& bench_;
  comm::Communicator& tp_;
  const kernels::OtherIds others_;
  const std::int64_t ids_, own_tokens_;
};

Outcome run(const Problem& problem, int tp, std::int64_t divisible_by = 0) {
  config::ModelConfig config;
  config.hidden_size = kHidden;
  config.vocab_size = problem.vocabulary;
  config.tensor_model_parallel_size = tp;
  config.should_pad_vocab = divisible_by > 0;
  config.make_vocab_size_divisible_by = std::max<std::int64_t>(1, divisible_by);
  Outcome outcome;
  outcome.dtable.resize(problem.table.size());
  outcome.dhead.resize(problem.table.size());
  outcome.losses.resize(static_cast<std::size_t>(tp));
  std::mutex mutex;
  comm::run_threads({.world = tp}, [&](comm::Endpoint& endpoint) {
    comm::Bench bench(endpoint, comm::Peers::Real, tensor::StreamRole::Alone);
    comm::poison_on_error(endpoint, [&] { Rank(config, problem, bench).run(outcome, mutex); });
  });
  return outcome;
}

void expect_near(const Values& values, const Values& expected, const char* what) {
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], expected[i], 2e-6 * (1 + std::abs(expected[i]))) << what << " " << i;
  }
}

struct Shared {
  std::int64_t vocabulary;
  int tp;
  std::int64_t divisible_by = 0;  // 0: not padded
};

class Vocabulary : public ::testing::TestWithParam<Shared> {};

TEST_P(Vocabulary, SharedByRanksGivesWhatOneRankHas) {
  const auto [vocabulary, tp, divisible_by] = GetParam();
  const Problem problem(vocabulary);
  const Outcome one = run(problem, 1), shared = run(problem, tp, divisible_by);
  EXPECT_EQ(shared.embedded, one.embedded);
  EXPECT_EQ(shared.dtable, one.dtable);
  expect_near(shared.dx, one.dx, "dx");
  expect_near(shared.dhead, one.dhead, "dhead");
  expect_near(shared.dnorm, one.dnorm, "dnorm");
  for (const double loss : shared.losses) {
    EXPECT_NEAR(loss, one.losses.front(), 1e-5);
    EXPECT_EQ(loss, shared.losses.front());
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks,
                         Vocabulary,
                         ::testing::Values(Shared{8, 2},
                                           Shared{8, 4},
                                           Shared{7, 2, 1},
                                           Shared{29, 4, 3},
                                           Shared{13, 1, 8}),
                         [](const auto& case_of) {
                           const Shared& at = case_of.param;
                           return base::text("v{}_tp{}_by{}",
                                             at.vocabulary,
                                             at.tp,
                                             at.divisible_by);
                         });

TEST(VocabularySplit, PaddingIsBehindTheLastPart) {
  config::ModelConfig config;
  config.vocab_size = 29;
  config.should_pad_vocab = true;
  config.make_vocab_size_divisible_by = 3;
  config.tensor_model_parallel_size = 4;
  EXPECT_EQ(config.padded_vocab_size(), 36);
  const std::vector<std::int64_t> firsts{0, 9, 18, 27}, behind{20, 11, 2, 0};
  for (int tp = 0; tp < 4; ++tp) {
    const kernels::OtherIds others = other_ids(config, {.tp = tp});
    EXPECT_EQ(others.before, firsts[static_cast<std::size_t>(tp)]);
    EXPECT_EQ(others.behind, behind[static_cast<std::size_t>(tp)]);
  }
}

}  // namespace vocabulary_test
}  // namespace weft::model
