// Checks of elementwise operations, sums over all elements, and the optimizer.
#include "weft/kernels/checks.h"
#include "weft/kernels/operations.h"

namespace weft::kernels {
namespace {

void check_like(std::string_view name, const Tensor& x, const Tensor& y) {
  CHECK(x.shape() == y.shape(),
        "{} is {}, should be {}",
        name,
        x.shape().print(),
        y.shape().print());
  check_contiguous(name, x);
  check_contiguous("y", y);
}

void check_sum(const Tensor& sum, const Tensor& x) {
  check_vector("sum", sum, 1);
  check_dtype("sum", sum, DType::F64);
  vector_length("x", x);
  check_float("x", x);
}

void check_master(const Tensor& master, const Tensor& weights) {
  const bool is_narrow = (master.dtype() == DType::I16 || master.dtype() == DType::F16) &&
                         weights.dtype() == DType::BF16;
  CHECK(master.dtype() == DType::F32 || is_narrow,
        "a master of {} for weights of {}",
        tensor::name_of(master.dtype()),
        tensor::name_of(weights.dtype()));
}

void check_moment(std::string_view name, const Tensor& x) {
  CHECK(x.dtype() == DType::F32 || x.dtype() == DType::BF16 || x.dtype() == DType::F16,
        "{} is {}, should be fp32, bf16 or fp16",
        name,
        tensor::name_of(x.dtype()));
}

}  // namespace

void add(Stream& stream, Tensor y, Tensor a, Tensor b) {
  check_like("a", a, y);
  check_like("b", b, y);
  check_float("y", y);
  check_dtype("a", a, y.dtype());
  check_dtype("b", b, y.dtype());
  operations_of(stream).add(stream, std::move(y), std::move(a), std::move(b));
}

void accumulate(Stream& stream, Tensor y, Tensor a) {
  check_like("a", a, y);
  check_dtype("a", a, DType::F32);
  check_float("y", y);
  operations_of(stream).accumulate(stream, std::move(y), std::move(a));
}

void scale(Stream& stream, Tensor y, float factor) {
  check_contiguous("y", y);
  check_dtype("y", y, DType::F32);
  operations_of(stream).scale(stream, std::move(y), factor);
}

void zero(Stream& stream, Tensor y) {
  check_contiguous("y", y);
  operations_of(stream).zero(stream, std::move(y));
}

void fill(Stream& stream, Tensor y, std::int64_t value) {
  check_contiguous("y", y);
  CHECK(y.dtype() == DType::I32 || y.dtype() == DType::I64,
        "fill of {}",
        tensor::name_of(y.dtype()));
  operations_of(stream).fill(stream, std::move(y), value);
}

void copy(Stream& stream, Tensor y, Tensor x) {
  CHECK(x.shape() == y.shape(), "x is {}, should be {}", x.shape().print(), y.shape().print());
  if (x.shape().rank() != 2) check_like("x", x, y);
  if (y.dtype() != x.dtype()) {
    check_float("x", x);
    check_float("y", y);
  }
  operations_of(stream).copy(stream, std::move(y), std::move(x));
}

void squared_norm(Stream& stream, Tensor sum, Tensor x, Write write) {
  check_sum(sum, x);
  operations_of(stream).squared_norm(stream, std::move(sum), std::move(x), write);
}

void sum(Stream& stream, Tensor sum, Tensor x) {
  check_sum(sum, x);
  check_dtype("x", x, DType::F32);
  operations_of(stream).sum(stream, std::move(sum), std::move(x));
}

void masters_in_half(Stream& stream, Tensor master, Tensor weights) {
  check_like("master", master, weights);
  vector_length("weights", weights);
  check_dtype("master", master, DType::F16);
  check_dtype("weights", weights, DType::BF16);
  operations_of(stream).masters_in_half(stream, std::move(master), std::move(weights));
}

void count_zeros(Stream& stream, Tensor count, Tensor x, Write write) {
  check_sum(count, x);
  operations_of(stream).count_zeros(stream, std::move(count), std::move(x), write);
}

void adamw(Stream& stream,
           Tensor weights,
           Tensor master,
           Tensor moment1,
           Tensor moment2,
           Tensor gradient,
           const AdamW& options) {
  const std::int64_t n = vector_length("weights", weights);
  check_float("weights", weights);
  for (const Tensor* x : {&master, &moment1, &moment2, &gradient}) {
    check_vector("the optimizer's state", *x, n);
  }
  check_float("gradient", gradient);
  check_master(master, weights);
  check_moment("moment1", moment1);
  check_moment("moment2", moment2);
  CHECK(options.step >= 1, "step {}", options.step);
  std::int64_t last = 0;
  for (const ElementRun& run : options.undecayed) {
    CHECK(last <= run.begin && run.begin <= run.end && run.end <= n,
          "elements {} to {} of {} without decay, after those before {}",
          run.begin,
          run.end,
          n,
          last);
    last = run.end;
  }
  operations_of(stream).adamw(stream,
                              std::move(weights),
                              std::move(master),
                              std::move(moment1),
                              std::move(moment2),
                              std::move(gradient),
                              options);
}

}  // namespace weft::kernels
