// Noise is a function of its purpose.
#include "tests/kernels/conformance_support.h"
#include "weft/base/random.h"
#include "weft/base/text.h"

namespace weft::kernels {
namespace router_noise_test {

constexpr std::uint64_t kKey = 77;

void add_jitter(std::vector<Case>& cases, const Shape& shape, DType dtype) {
  const Argument x = strided(input("x", dtype, shape, draw(1, shape)));
  Values y;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const auto element = std::uint64_t(3 * shape.dims()[1]) + i;
    y.push_back(x.values[i] * (1 + 0.125 * (2 * base::uniform(kKey, element) - 1)));
  }
  cases.push_back({name_of_case("jitter", dtype, shape),
                   {strided(output("y", dtype, shape)), x},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     jitter(stream, a[0], a[1], 0.125f, {.key = kKey, .tokens = {.first = 3}});
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{whole(0, y, tolerance_of(dtype))};
                   }});
}

void add_logits(std::vector<Case>& cases, const Shape& shape, float deviation) {
  const auto experts = std::size_t(shape.dims()[1]);
  std::vector<float> drawn(std::size_t(shape.elements())), bias(experts);
  base::normals(kKey, 3 * experts, drawn);
  base::normals(kKey + 1, 0, bias);
  Values logits;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    logits.push_back(double(drawn[i]) + double(deviation) * double(bias[i % experts]));
  }
  cases.push_back(
      {base::text("{}_{}", name_of_case("random_logits", DType::F32, shape), int(deviation)),
       {strided(output("logits", DType::F32, shape))},
       [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
         random_logits(stream,
                       a[0],
                       {.noise = {.key = kKey, .tokens = {.first = 3}},
                        .expert_key = kKey + 1,
                        .deviation = deviation});
       },
       [=](const std::vector<Argument>&) { return std::vector{whole(0, logits, 1e-6)}; }});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Shape& shape : {Shape{0, 5}, Shape{1, 1}, Shape{7, 5}, Shape{900, 70}}) {
    add_jitter(all, shape, DType::F32);
    add_jitter(all, shape, DType::BF16);
    add_logits(all, shape, 0);
    add_logits(all, shape, 2);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(RouterNoise,
                         Conformance,
                         testing::ValuesIn(on_devices(cases())),
                         case_name);

}  // namespace router_noise_test
}  // namespace weft::kernels
