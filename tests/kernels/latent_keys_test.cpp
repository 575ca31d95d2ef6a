#include "tests/kernels/conformance_support.h"

namespace weft::kernels {
namespace latent_keys_test {

struct Result {
  Values k, v;
};

Result reference(const LatentHeads& s, const Values& kv, const Values& position) {
  Result result;
  const auto slice = [](const Values& from, std::int64_t begin, std::int64_t count, Values& to) {
    to.insert(to.end(), from.begin() + begin, from.begin() + begin + count);
  };
  const std::int64_t tokens = std::ssize(position) / s.position;
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t head = 0; head < s.heads; ++head) {
      const std::int64_t at = (t * s.heads + head) * (s.content + s.value);
      slice(kv, at, s.content, result.k);
      slice(position, t * s.position, s.position, result.k);
      slice(kv, at + s.content, s.value, result.v);
    }
  }
  return result;
}

void add_cases(std::vector<Case>& cases, std::int64_t tokens, const LatentHeads& s, DType dtype) {
  const Shape kvs{tokens, s.heads * (s.content + s.value)}, ps{tokens, s.position};
  const Shape ks{tokens, s.heads * (s.content + s.position)}, vs{tokens, s.heads * s.value};
  const Argument kv = strided(input("kv", dtype, kvs, draw(1, kvs)));
  const Argument position = strided(input("position", dtype, ps, draw(2, ps)));
  cases.push_back({name_of_case("forward", dtype, ks),
                   {strided(output("k", dtype, ks)), strided(output("v", dtype, vs)), kv, position},
                   [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     latent_keys_forward(stream, a[0], a[1], a[2], a[3], s);
                   },
                   [=](const std::vector<Argument>&) {
                     const Result want = reference(s, kv.values, position.values);
                     return std::vector{whole(0, want.k, 0), whole(1, want.v, 0)};
                   }});
  const Argument dk = strided(input("dk", dtype, ks, draw(3, ks)));
  const Argument dv = strided(input("dv", dtype, vs, draw(4, vs)));
  cases.push_back(
      {name_of_case("dgrad", dtype, ks),
       {strided(output("dkv", dtype, kvs)), strided(output("dposition", dtype, ps)), dk, dv},
       [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
         latent_keys_dgrad(stream, a[0], a[1], a[2], a[3], s);
       },
       [=](const std::vector<Argument>&) {
         const auto loss = [&](const Values& kv_at, const Values& position_at) {
           const Result result = reference(s, kv_at, position_at);
           return dot(dk.values, result.k) + dot(dv.values, result.v);
         };
         const auto by_kv = [&](const Values& at) { return loss(at, position.values); };
         const auto by_position = [&](const Values& at) { return loss(kv.values, at); };
         const double tolerance = tolerance_of(dtype);
         return std::vector{finite_difference(0, kv.values, by_kv, tolerance),
                            finite_difference(1, position.values, by_position, tolerance)};
       }});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::F32, DType::BF16}) {
    add_cases(all, 1, {.heads = 1, .content = 1, .position = 2, .value = 1}, dtype);
    add_cases(all, 0, {.heads = 2, .content = 3, .position = 2, .value = 4}, dtype);
    add_cases(all, 7, {.heads = 3, .content = 5, .position = 4, .value = 2}, dtype);
    add_cases(all, 600, {.heads = 4, .content = 16, .position = 8, .value = 16}, dtype);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(LatentKeys,
                         Conformance,
                         testing::ValuesIn(on_devices(cases())),
                         case_name);

}  // namespace latent_keys_test
}  // namespace weft::kernels
