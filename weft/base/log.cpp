#include "weft/base/log.h"

#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace weft::base {

Log make_log(const std::string& name, LogTo where) {
  switch (where) {
    case LogTo::Stderr: {
      auto log =
          std::make_shared<spdlog::logger>(name, std::make_shared<spdlog::sinks::stderr_sink_mt>());
      log->set_pattern("[%H:%M:%S.%e] [%l] [%n] %v");
      return log;
    }
    case LogTo::Nowhere:
      return std::make_shared<spdlog::logger>(name,
                                              std::make_shared<spdlog::sinks::null_sink_mt>());
  }
  return nullptr;
}

}  // namespace weft::base
