#include "weft/trace/span.h"

namespace weft::trace {

std::string_view word(SpanKind kind) {
  switch (kind) {
    case SpanKind::Node:
      return "node";
    case SpanKind::Gemm:
      return "gemm";
    case SpanKind::Attention:
      return "attention";
    case SpanKind::Memory:
      return "memory";
    case SpanKind::Copy:
      return "copy";
    case SpanKind::Communication:
      return "communication";
    case SpanKind::Host:
      return "host";
  }
  return "";
}

}  // namespace weft::trace
