// Logging: a value handed down, never a global. Only cli/ and train/ log; libraries throw.
#pragma once

#include <spdlog/logger.h>

#include <memory>
#include <string>

namespace weft::base {

using Log = std::shared_ptr<spdlog::logger>;

enum class LogTo { Stderr, Nowhere };

// Lines "[time] [level] [name] text" on standard error, or a logger that drops everything.
Log make_log(const std::string& name, LogTo where);

}  // namespace weft::base
