// Logger, passed as a value, never a global. Only cli/ and train/ log; libraries throw.
#pragma once

#include <spdlog/logger.h>

#include <memory>
#include <string>

namespace weft::base {

using Log = std::shared_ptr<spdlog::logger>;

enum class LogTo { Stderr, Nowhere };

// Logs "[time] [level] [name] text" to standard error, or drops everything.
Log make_log(const std::string& name, LogTo where);

}  // namespace weft::base
