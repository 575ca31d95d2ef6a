#include "weft/comm/failure.h"

#include <new>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::comm {

void throw_peer_failed(const Failure& failure) {
  throw base::SystemError(base::text("rank {} failed: {}", failure.rank, failure.reason));
}

std::string reason_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

void throw_from_rank(int rank, const std::exception_ptr& error) {
  const std::string what = base::text("rank {}: {}", rank, reason_of(error));
  try {
    std::rethrow_exception(error);
  } catch (const base::ConfigError&) {
    throw base::ConfigError(what);
  } catch (const base::SystemError&) {
    throw base::SystemError(what);
  } catch (const std::bad_alloc&) {
    throw base::SystemError(what);
  } catch (...) {
    throw base::InternalError(what);
  }
}

}  // namespace weft::comm
