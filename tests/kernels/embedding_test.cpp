#include "tests/kernels/conformance_support.h"
#include "tests/kernels/scratch_support.h"

namespace weft::kernels {
namespace embedding_test {

struct Table {
  std::int64_t rows = 0, width = 0;
  OtherIds others = {};

  bool is_shared() const { return others.before + others.behind > 0; }
  std::int64_t ids() const { return others.before + rows + others.behind; }
};

Values reference(const Table& of, const Values& table, const Values& ids) {
  Values x;
  for (const double id : ids) {
    const std::int64_t row = std::int64_t(id) - of.others.before;
    const bool own = row >= 0 && row < of.rows;
    for (std::int64_t c = 0; c < of.width; ++c)
      x.push_back(own ? table[std::size_t(row * of.width + c)] : 0);
  }
  return x;
}

void add_cases(std::vector<Case>& cases, std::int64_t t, const Table& of, DType dtype) {
  const Shape xs{t, of.width}, tables{of.rows, of.width}, named{t, of.rows, of.width};
  const OtherIds others = of.others;
  const std::string shared = of.is_shared() ? "part_" : "";
  Values tokens;
  for (std::int64_t i = 0; i < t; ++i) tokens.push_back(double(i * i % of.ids()));  // some repeat
  const Argument ids = input("ids", DType::I32, {t}, tokens);
  const Argument table = strided(input("table", dtype, tables, draw(1, tables)));
  const Argument dx = strided(input("dx", dtype, xs, draw(2, xs)));
  cases.push_back({name_of_case(shared + "forward", dtype, named),
                   {strided(output("x", dtype, xs)), table, ids},
                   [others](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     embedding_forward(stream, a[0], a[1], a[2], others);
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{whole(0, reference(of, table.values, tokens), 0)};
                   }});
  for (const Write write : {Write::Accumulate, Write::Assign}) {
    cases.push_back({name_of_case(shared + name_of_wgrad(write), dtype, named),
                     {strided(weight_gradient("dtable", tables, write)), dx, ids},
                     [write, others](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                       embedding_wgrad(stream, a[0], a[1], a[2], write, others);
                     },
                     [=](const std::vector<Argument>&) {
                       const auto loss = [&](const Values& at) {
                         return dot(dx.values, reference(of, at, tokens));
                       };
                       return std::vector{finite_difference(0, table.values, loss, 3e-6)};
                     }});
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::F32, DType::BF16}) {
    add_cases(all, 1, {1, 1}, dtype);
    add_cases(all, 0, {3, 4}, dtype);
    add_cases(all, 50, {7, 150}, dtype);
    add_cases(all, 700, {11, 70}, dtype);
    add_cases(all, 50, {7, 150, {.before = 3, .behind = 2}}, dtype);
    add_cases(all, 700, {11, 70, {.before = 0, .behind = 9}}, dtype);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Embedding, Conformance, testing::ValuesIn(on_devices(cases())), case_name);

class EmbeddingOn : public testing::TestWithParam<DeviceKind> {
 protected:
  // Error of a lookup between two valid ones, in a table of three rows.
  std::string forward_error(std::int64_t id, const OtherIds& others = {}) {
    Scratch s(GetParam());
    const Tensor x = s.tensor(DType::F32, {3, 2}), table = s.tensor(DType::F32, {3, 2});
    const Tensor ids = s.tensor(DType::I32, {3}, {0, double(id), 2});
    return s.error_of([&](Stream& stream) { embedding_forward(stream, x, table, ids, others); });
  }
  std::string wgrad_error(std::int64_t id, const OtherIds& others = {}) {
    Scratch s(GetParam());
    const Tensor dtable = s.tensor(DType::F32, {3, 2}), dx = s.tensor(DType::F32, {3, 2});
    const Tensor ids = s.tensor(DType::I32, {3}, {0, double(id), 2});
    return s.error_of([&](Stream& stream) {
      embedding_wgrad(stream, dtable, dx, ids, Write::Accumulate, others);
    });
  }
};

TEST_P(EmbeddingOn, ATokenOutsideTheVocabularyIsAnError) {
  EXPECT_EQ(forward_error(1), "none");
  EXPECT_EQ(forward_error(3), own_fault("embedding_forward", "token 3 of a vocabulary of 3"));
  EXPECT_EQ(forward_error(-1), own_fault("embedding_forward", "token -1 of a vocabulary of 3"));
  EXPECT_EQ(wgrad_error(3), own_fault("embedding_wgrad", "token 3 of a vocabulary of 3"));
  EXPECT_EQ(wgrad_error(-1), "none") << "a position without a token has no gradient";
}

TEST_P(EmbeddingOn, ATokenThatNoRankHasIsAnErrorOnEveryRank) {
  const OtherIds others{.before = 4, .behind = 2};
  EXPECT_EQ(forward_error(8, others), "none");
  EXPECT_EQ(forward_error(9, others),
            own_fault("embedding_forward", "token 9 of a vocabulary of 9"));
  EXPECT_EQ(wgrad_error(8, others), "none");
  EXPECT_EQ(wgrad_error(9, others), own_fault("embedding_wgrad", "token 9 of a vocabulary of 9"));
}

INSTANTIATE_TEST_SUITE_P(Embedding,
                         EmbeddingOn,
                         testing::ValuesIn(devices::all_devices()),
                         device_name);

}  // namespace embedding_test
}  // namespace weft::kernels
