#include "weft/base/dtype.h"

#include <algorithm>

#include "weft/base/check.h"

namespace weft::base {

static_assert(std::ranges::is_sorted(kDTypes, {}, &DTypeRow::dtype),
              "rows are in the order of the enum");

std::int64_t size_of(DType dtype) {
  const DTypeRow& row = row_of(dtype);
  CHECK(row.bits % 8 == 0, "a single value of {} has no bytes of its own", row.name);
  return row.bits / 8;
}

}  // namespace weft::base
