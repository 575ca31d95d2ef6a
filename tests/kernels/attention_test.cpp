#include "tests/kernels/conformance_support.h"
#include "weft/base/text.h"

namespace weft::kernels {
namespace attention_test {

struct Sizes {
  std::int64_t batch;
  AttentionShape shape;

  std::int64_t tokens() const { return batch * shape.sequence; }
  std::int64_t value_head() const { return shape.value_width.value_or(shape.head_width); }
  std::int64_t query_width() const { return shape.heads * shape.head_width; }
  std::int64_t key_width() const { return shape.groups * shape.head_width; }
  std::int64_t value_width() const { return shape.groups * value_head(); }
  std::int64_t output_width() const { return shape.heads * value_head(); }
};

struct Result {
  Values o, lse;
};

// One query of one head against the keys it may see.
void reference_query(const Sizes& s,
                     std::int64_t head,
                     std::int64_t t,
                     const Values& q,
                     const Values& k,
                     const Values& v,
                     Result& result) {
  const std::int64_t d = s.shape.head_width, begin = t - t % s.shape.sequence;
  const std::int64_t group = head / (s.shape.heads / s.shape.groups);
  const auto key = [&](std::int64_t u) { return std::size_t(u * s.key_width() + group * d); };
  const auto value = [&](std::int64_t u) {
    return std::size_t(u * s.value_width() + group * s.value_head());
  };
  const auto query = std::size_t(t * s.query_width() + head * d);
  const auto output = std::size_t(t * s.output_width() + head * s.value_head());
  Values scores;
  double sum = 0;
  for (std::int64_t u = begin; u <= t; ++u) {
    double score = 0;
    for (std::size_t i = 0; i < std::size_t(d); ++i) score += q[query + i] * k[key(u) + i];
    scores.push_back(std::exp(score * double(s.shape.scale)));
    sum += scores.back();
  }
  for (std::int64_t u = begin; u <= t; ++u) {
    const double p = scores[std::size_t(u - begin)] / sum;
    for (std::size_t i = 0; i < std::size_t(s.value_head()); ++i) {
      result.o[output + i] += p * v[value(u) + i];
    }
  }
  result.lse[std::size_t(head * s.tokens() + t)] = std::log(sum);
}

Result reference(const Sizes& s, const Values& q, const Values& k, const Values& v) {
  Result result{Values(std::size_t(s.tokens() * s.output_width())),
                Values(std::size_t(s.shape.heads * s.tokens()))};
  for (std::int64_t head = 0; head < s.shape.heads; ++head) {
    for (std::int64_t t = 0; t < s.tokens(); ++t) reference_query(s, head, t, q, k, v, result);
  }
  return result;
}

void add_cases(std::vector<Case>& cases, const Sizes& s, DType dtype) {
  const Shape qs{s.tokens(), s.query_width()}, ks{s.tokens(), s.key_width()};
  const Shape vs{s.tokens(), s.value_width()}, os{s.tokens(), s.output_width()};
  const Shape ls{s.shape.heads, s.tokens()};
  const auto name = [&](const char* op) {
    return base::text("{}_{}_batch{}_sequence{}_heads{}_groups{}_width{}_value{}",
                      op,
                      tensor::name_of(dtype),
                      s.batch,
                      s.shape.sequence,
                      s.shape.heads,
                      s.shape.groups,
                      s.shape.head_width,
                      s.value_head());
  };
  const Argument q = strided(input("q", dtype, qs, draw(1, qs)));
  const Argument k = strided(input("k", dtype, ks, draw(2, ks)));
  const Argument v = strided(input("v", dtype, vs, draw(3, vs)));
  cases.push_back(
      {name("forward"),
       {strided(output("o", dtype, os)), output("lse", DType::F32, ls), q, k, v},
       [=](Stream& stream, Pool& pool, const std::vector<Tensor>& a) {
         attention_forward(stream, pool, a[0], a[1], a[2], a[3], a[4], s.shape);
       },
       [=](const std::vector<Argument>&) {
         const Result want = reference(s, q.values, k.values, v.values);
         return std::vector{whole(0, want.o, tolerance_of(dtype)), whole(1, want.lse, 3e-6)};
       }});
  const Result saved = reference(s, q.values, k.values, v.values);
  const Argument d_o = strided(input("do", dtype, os, draw(4, os)));
  const Argument o = strided(input("o", dtype, os, saved.o));
  const Argument lse = input("lse", DType::F32, ls, saved.lse);
  cases.push_back(
      {name("dgrad"),
       {strided(output("dq", dtype, qs)),
        strided(output("dk", dtype, ks)),
        strided(output("dv", dtype, vs)),
        d_o,
        o,
        lse,
        q,
        k,
        v},
       [=](Stream& stream, Pool& pool, const std::vector<Tensor>& a) {
         attention_dgrad(stream,
                         pool,
                         a[0],
                         a[1],
                         a[2],
                         a[3],
                         a[4],
                         a[5],
                         a[6],
                         a[7],
                         a[8],
                         s.shape);
       },
       [=](const std::vector<Argument>&) {
         const auto loss = [&](const Values& aq, const Values& ak, const Values& av) {
           return dot(d_o.values, reference(s, aq, ak, av).o);
         };
         const auto by_q = [&](const Values& at) { return loss(at, k.values, v.values); };
         const auto by_k = [&](const Values& at) { return loss(q.values, at, v.values); };
         const auto by_v = [&](const Values& at) { return loss(q.values, k.values, at); };
         // The saved o is rounded too.
         const double tolerance = dtype == DType::BF16 ? 2e-2 : 1e-5;
         const std::size_t samples = s.tokens() > 100 ? 6 : 24;
         return std::vector{finite_difference(0, q.values, by_q, tolerance, samples),
                            finite_difference(1, k.values, by_k, tolerance, samples),
                            finite_difference(2, v.values, by_v, tolerance, samples)};
       }});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto shape = [](std::int64_t s, std::int64_t h, std::int64_t g, std::int64_t d) {
    return AttentionShape{.sequence = s, .heads = h, .groups = g, .head_width = d, .scale = 0.4f};
  };
  for (const DType dtype : {DType::F32, DType::BF16}) {
    add_cases(all, {1, shape(1, 1, 1, 1)}, dtype);
    add_cases(all, {0, shape(4, 2, 1, 4)}, dtype);
    add_cases(all, {2, shape(7, 6, 2, 5)}, dtype);
    add_cases(all, {1, shape(70, 3, 3, 8)}, dtype);   // more than a block of queries
    add_cases(all, {1, shape(600, 2, 1, 4)}, dtype);  // more than a chunk of keys
    for (const std::int64_t value_width : {3, 11}) {  // narrower and wider than the keys
      AttentionShape uneven = shape(70, 4, 2, 6);
      uneven.value_width = value_width;
      add_cases(all, {2, uneven}, dtype);
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Attention, Conformance, testing::ValuesIn(on_devices(cases())), case_name);

TEST(Attention, LargeScoresDoNotOverflow) {
  Workbench bench;
  auto& [device, pool, stream] = bench;
  const auto matrix = [&](float value) {
    const Tensor x = Tensor::host_visible(pool, DType::F32, {3, 1}, tensor::Tag::Activations);
    for (int i = 0; i < 3; ++i) x.host<float>()[i] = value;
    return x;
  };
  const Tensor q = matrix(1000), k = matrix(1000), v = matrix(2), o = matrix(0);
  const Tensor lse = Tensor::host_visible(pool, DType::F32, {1, 3}, tensor::Tag::Activations);
  attention_forward(*stream,
                    pool,
                    o,
                    lse,
                    q,
                    k,
                    v,
                    {.sequence = 3, .heads = 1, .groups = 1, .head_width = 1, .scale = 1});
  EXPECT_FLOAT_EQ(o.host<float>()[2], 2);
  EXPECT_FLOAT_EQ(lse.host<float>()[0], 1e6f);
}

}  // namespace attention_test
}  // namespace weft::kernels
