#include "weft/base/error_context.h"

#include <filesystem>
#include <new>
#include <system_error>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::base {

std::string reason_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const std::filesystem::filesystem_error& known) {
    return text("'{}': {}", known.path1().string(), known.code().message());
  } catch (const std::exception& known) {
    return known.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

std::string told(const std::exception_ptr& error) {
  const std::string reason = reason_of(error);
  try {
    std::rethrow_exception(error);
  } catch (const ConfigError&) {
    return reason;
  } catch (const SystemError&) {
    return reason;
  } catch (const std::bad_alloc&) {
    return reason;
  } catch (const std::system_error&) {
    return reason;
  } catch (...) {
    return text("a bug in weft: {}; please report it with the command and what weft doctor prints",
                reason);
  }
}

void throw_at(std::string_view where, const std::exception_ptr& error) {
  const std::string what = text("{}: {}", where, reason_of(error));
  try {
    std::rethrow_exception(error);
  } catch (const ConfigError&) {
    throw ConfigError(what);
  } catch (const MissingInput&) {
    throw MissingInput(what);
  } catch (const SystemError&) {
    throw SystemError(what);
  } catch (const std::bad_alloc&) {
    throw SystemError(what);
  } catch (const std::system_error&) {
    throw SystemError(what);
  } catch (...) {
    throw InternalError(what);
  }
}

}  // namespace weft::base
