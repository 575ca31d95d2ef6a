#include "tests/kernels/conformance_support.h"
#include "weft/base/error.h"

namespace weft::kernels {
namespace embedding_test {

Values reference(std::int64_t width, const Values& table, const Values& ids) {
  Values x;
  for (const double id : ids) {
    for (std::int64_t c = 0; c < width; ++c)
      x.push_back(table[std::size_t(std::int64_t(id) * width + c)]);
  }
  return x;
}

void add_cases(std::vector<Case>& cases,
               std::int64_t t,
               std::int64_t v,
               std::int64_t d,
               DType dtype) {
  const Shape xs{t, d}, tables{v, d};
  Values tokens;
  for (std::int64_t i = 0; i < t; ++i) tokens.push_back(double(i * i % v));  // with repetitions
  const Argument ids = input("ids", DType::I32, {t}, tokens);
  const Argument table = strided(input("table", dtype, tables, draw(1, tables)));
  const Argument dx = strided(input("dx", dtype, xs, draw(2, xs)));
  cases.push_back({name_of_case("forward", dtype, {t, v, d}),
                   {strided(output("x", dtype, xs)), table, ids},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     embedding_forward(stream, a[0], a[1], a[2]);
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{whole(0, reference(d, table.values, tokens), 0)};
                   }});
  for (const Write write : {Write::Accumulate, Write::Assign}) {
    cases.push_back({name_of_case(name_of_wgrad(write), dtype, {t, v, d}),
                     {strided(weight_gradient("dtable", tables, write)), dx, ids},
                     [write](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                       embedding_wgrad(stream, a[0], a[1], a[2], write);
                     },
                     [=](const std::vector<Argument>&) {
                       const auto loss = [&](const Values& at) {
                         return dot(dx.values, reference(d, at, tokens));
                       };
                       return std::vector{finite_difference(0, table.values, loss, 3e-6)};
                     }});
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::F32, DType::BF16}) {
    add_cases(all, 1, 1, 1, dtype);
    add_cases(all, 0, 3, 4, dtype);
    add_cases(all, 50, 7, 150, dtype);
    add_cases(all, 700, 11, 70, dtype);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Embedding, Conformance, testing::ValuesIn(on_devices(cases())), case_name);

TEST(Embedding, ATokenOutsideTheVocabularyIsAnError) {
  Workbench bench;
  auto& [device, pool, stream] = bench;
  const Tensor x = Tensor::host_visible(pool, DType::F32, {1, 2}, tensor::Tag::Activations);
  const Tensor table = Tensor::host_visible(pool, DType::F32, {3, 2}, tensor::Tag::Activations);
  const Tensor ids = Tensor::host_visible(pool, DType::I32, {1}, tensor::Tag::Activations);
  ids.host<std::int32_t>()[0] = 3;
  EXPECT_THROW(embedding_forward(*stream, x, table, ids), base::InternalError);
}

}  // namespace embedding_test
}  // namespace weft::kernels
