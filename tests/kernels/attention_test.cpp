#include "tests/kernels/conformance_support.h"
#include "weft/base/text.h"

namespace weft::kernels {
namespace attention_test {

struct Sizes {
  std::int64_t batch;
  AttentionShape shape;

  std::int64_t tokens() const { return batch * shape.query_rows().each; }
  std::int64_t key_tokens() const { return batch * shape.key_rows().each; }
  std::int64_t value_head() const { return shape.value_width.value_or(shape.head_width); }
  std::int64_t query_width() const { return shape.heads * shape.head_width; }
  std::int64_t key_width() const { return shape.groups * shape.head_width; }
  std::int64_t value_width() const { return shape.groups * value_head(); }
  std::int64_t output_width() const { return shape.heads * value_head(); }
};

struct Result {
  Values o, lse;
};

// One query (number i of its sequence) of one head against its visible keys.
void reference_query(const Sizes& s,
                     std::int64_t head,
                     std::int64_t sequence,
                     std::int64_t i,
                     const Values& q,
                     const Values& k,
                     const Values& v,
                     Result& result) {
  const SequenceRows queries = s.shape.query_rows(), keys = s.shape.key_rows();
  const std::int64_t d = s.shape.head_width, t = sequence * queries.each + queries.begin + i;
  const std::int64_t group = head / (s.shape.heads / s.shape.groups);
  const std::int64_t begin = sequence * keys.each + keys.begin;
  const bool causal = s.shape.mask == AttentionMask::Causal;
  const std::int64_t end = begin + keys.count - (causal ? queries.count - 1 - i : 0);
  const auto key = [&](std::int64_t u) { return std::size_t(u * s.key_width() + group * d); };
  const auto value = [&](std::int64_t u) {
    return std::size_t(u * s.value_width() + group * s.value_head());
  };
  const auto query = std::size_t(t * s.query_width() + head * d);
  const auto output = std::size_t(t * s.output_width() + head * s.value_head());
  Values scores;
  double sum = 0;
  for (std::int64_t u = begin; u < end; ++u) {
    double score = 0;
    for (std::size_t c = 0; c < std::size_t(d); ++c) score += q[query + c] * k[key(u) + c];
    scores.push_back(std::exp(score * double(s.shape.scale)));
    sum += scores.back();
  }
  for (std::int64_t u = begin; u < end; ++u) {
    const double p = scores[std::size_t(u - begin)] / sum;
    for (std::size_t c = 0; c < std::size_t(s.value_head()); ++c) {
      result.o[output + c] += p * v[value(u) + c];
    }
  }
  result.lse[std::size_t(head * s.tokens() + t)] = std::log(sum);
}

// Zero in rows outside the call.
Result reference(const Sizes& s, const Values& q, const Values& k, const Values& v) {
  Result result{Values(std::size_t(s.tokens() * s.output_width())),
                Values(std::size_t(s.shape.heads * s.tokens()))};
  for (std::int64_t head = 0; head < s.shape.heads; ++head) {
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t i = 0; i < s.shape.query_rows().count; ++i) {
        reference_query(s, head, b, i, q, k, v, result);
      }
    }
  }
  return result;
}

bool names(const SequenceRows& rows, std::int64_t row) {
  return row % rows.each >= rows.begin && row % rows.each < rows.end();
}

// Expected values in the given rows.
Expected named(Expected all, const SequenceRows& rows, std::int64_t columns) {
  Expected some{.argument = all.argument, .tolerance = all.tolerance};
  for (std::size_t i = 0; i < all.elements.size(); ++i) {
    if (!names(rows, std::int64_t(all.elements[i]) / columns)) continue;
    some.elements.push_back(all.elements[i]);
    some.values.push_back(all.values[i]);
  }
  return some;
}
Expected named_columns(Expected all, const SequenceRows& rows, std::int64_t columns) {
  Expected some{.argument = all.argument, .tolerance = all.tolerance};
  for (std::size_t i = 0; i < all.elements.size(); ++i) {
    if (!names(rows, std::int64_t(all.elements[i]) % columns)) continue;
    some.elements.push_back(all.elements[i]);
    some.values.push_back(all.values[i]);
  }
  return some;
}

std::string mask_name(const AttentionShape& shape) {
  if (shape.is_whole()) return "";
  const SequenceRows queries = shape.query_rows(), keys = shape.key_rows();
  return base::text("_queries{}to{}_keys{}to{}of{}_{}",
                    queries.begin,
                    queries.end(),
                    keys.begin,
                    keys.end(),
                    keys.each,
                    shape.mask == AttentionMask::Causal ? "causal" : "all");
}

void add_cases(std::vector<Case>& cases, const Sizes& s, DType dtype) {
  const Shape qs{s.tokens(), s.query_width()}, ks{s.key_tokens(), s.key_width()};
  const Shape vs{s.key_tokens(), s.value_width()}, os{s.tokens(), s.output_width()};
  const Shape ls{s.shape.heads, s.tokens()};
  const auto name = [&](const char* op) {
    return base::text("{}_{}_batch{}_sequence{}_heads{}_groups{}_width{}_value{}{}",
                      op,
                      tensor::name_of(dtype),
                      s.batch,
                      s.shape.sequence,
                      s.shape.heads,
                      s.shape.groups,
                      s.shape.head_width,
                      s.value_head(),
                      mask_name(s.shape));
  };
  const SequenceRows queries = s.shape.query_rows(), keys = s.shape.key_rows();
  const Argument q = strided(input("q", dtype, qs, draw(1, qs)));
  const Argument k = strided(input("k", dtype, ks, draw(2, ks)));
  const Argument v = strided(input("v", dtype, vs, draw(3, vs)));
  cases.push_back({name("forward"),
                   {strided(output("o", dtype, os)), output("lse", DType::F32, ls), q, k, v},
                   [=](Stream& stream, Pool& pool, const std::vector<Tensor>& a) {
                     attention_forward(stream, pool, a[0], a[1], a[2], a[3], a[4], s.shape);
                   },
                   [=](const std::vector<Argument>&) {
                     const Result want = reference(s, q.values, k.values, v.values);
                     return std::vector{
                         named(whole(0, want.o, tolerance_of(dtype)), queries, s.output_width()),
                         named_columns(whole(1, want.lse, 3e-6), queries, s.tokens())};
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
         // The stored o is rounded too.
         const double tolerance = dtype == DType::BF16 ? 2e-2 : 1e-5;
         const std::size_t samples = s.tokens() > 100 ? 6 : 24;
         const auto expected = [&](std::size_t argument, const Values& at, const auto& by) {
           return finite_difference(argument, at, by, tolerance, samples);
         };
         return std::vector{named(expected(0, q.values, by_q), queries, s.query_width()),
                            named(expected(1, k.values, by_k), keys, s.key_width()),
                            named(expected(2, v.values, by_v), keys, s.value_width())};
       }});
}

// Parts that context-parallel ranks compute: some queries, some keys.
void add_parts(std::vector<Case>& all, DType dtype) {
  using enum AttentionMask;
  const auto part = [&](SequenceRows queries, SequenceRows keys, AttentionMask mask) {
    const AttentionShape shape{.sequence = queries.each,
                               .heads = 4,
                               .groups = 2,
                               .head_width = 6,
                               .scale = 0.4f,
                               .value_width = 5,
                               .queries = queries,
                               .keys = keys,
                               .mask = mask};
    add_cases(all, {2, shape}, dtype);
  };
  part({8, 0, 8}, {8, 0, 4}, None);             // all over the first half
  part({8, 4, 4}, {8, 0, 8}, None);             // the second half over all
  part({8, 0, 4}, {32, 0, 12}, Causal);         // over a prefix, aligned at its end
  part({74, 37, 37}, {300, 0, 259}, Causal);    // partial blocks
  part({140, 70, 70}, {1200, 0, 590}, Causal);  // more than a chunk of keys
  part({70, 0, 70}, {90, 20, 33}, None);        // fewer keys than queries
}

// Two parts of the keys, the first one already merged.
void add_merge_cases(std::vector<Case>& all, DType dtype) {
  const AttentionShape shape{.sequence = 10,
                             .heads = 3,
                             .groups = 3,
                             .head_width = 7,
                             .value_width = 5,
                             .queries = SequenceRows{10, 4, 6}};
  const Shape os{20, 15}, ls{3, 20};
  const Argument part = strided(input("part", dtype, os, draw(1, os)));
  const Argument part_lse = input("part_lse", DType::F32, ls, draw(2, ls, 3));
  const Argument own = strided(input("own", DType::F32, os, draw(3, os)));
  const Argument own_lse = input("own_lse", DType::F32, ls, draw(4, ls, 3));
  all.push_back({base::text("merge_{}", tensor::name_of(dtype)),
                 {strided(output("sum", DType::F32, os)),
                  output("lse", DType::F32, ls),
                  own,
                  own_lse,
                  part,
                  part_lse},
                 [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                   copy(stream, a[0], a[2]);
                   copy(stream, a[1], a[3]);
                   attention_merge(stream, a[0], a[1], a[4], a[5], shape);
                 },
                 [=](const std::vector<Argument>&) {
                   Values o = own.values, l = own_lse.values;
                   for (std::size_t i = 0; i < o.size(); ++i) {
                     const std::size_t row = i / 15, at = i % 15 / 5 * 20 + row;
                     if (!names(shape.query_rows(), std::int64_t(row))) continue;
                     const double a = std::exp(own_lse.values[at]),
                                  b = std::exp(part_lse.values[at]);
                     o[i] = (a * own.values[i] + b * part.values[i]) / (a + b);
                     l[at] = std::log(a + b);
                   }
                   return std::vector{whole(0, o, 3e-6), whole(1, l, 3e-6)};
                 }});
}

void add_accumulate_cases(std::vector<Case>& all, DType dtype) {
  const SequenceRows rows{9, 2, 4};
  const Shape shape{27, 11};
  const Argument x = strided(input("x", dtype, shape, draw(1, shape)));
  const Argument y = strided(sum_into("y", shape));
  all.push_back({base::text("accumulate_rows_{}", tensor::name_of(dtype)),
                 {y, x},
                 [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                   accumulate_rows(stream, a[0], a[1], rows);
                 },
                 [=](const std::vector<Argument>&) {
                   Values want(x.values.size());
                   for (std::size_t i = 0; i < want.size(); ++i) {
                     if (names(rows, std::int64_t(i) / 11)) want[i] = x.values[i];
                   }
                   return std::vector{whole(0, want, 1e-6)};
                 }});
}

std::vector<Case> part_cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::F32, DType::BF16}) {
    add_merge_cases(all, dtype);
    add_accumulate_cases(all, dtype);
  }
  return all;
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
    add_parts(all, dtype);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Attention, Conformance, testing::ValuesIn(on_devices(cases())), case_name);

INSTANTIATE_TEST_SUITE_P(AttentionParts,
                         Conformance,
                         testing::ValuesIn(on_devices(part_cases())),
                         case_name);

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
