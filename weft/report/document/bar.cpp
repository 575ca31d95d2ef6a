#include "weft/report/document/bar.h"

#include "weft/base/text.h"

namespace weft::report {

std::string to_text(const Bar& bar) {
  int digits = 2;
  const auto shown = [&](double number) { return base::text("{:.{}f}", number, digits); };
  while (digits < 6 && bar.value != bar.limit && shown(bar.value) == shown(bar.limit)) ++digits;
  return base::text("{:7} {}: {}, {} {}",
                    bar.met() ? "met" : "NOT MET",
                    bar.name,
                    shown(bar.value),
                    bar.kind == Bar::Kind::AtMost ? "at most" : "at least",
                    shown(bar.limit));
}

base::Json to_json(const Bar& bar) {
  return {{"name", bar.name},
          {"value", bar.value},
          {bar.kind == Bar::Kind::AtMost ? "at_most" : "at_least", bar.limit},
          {"met", bar.met()}};
}

}  // namespace weft::report
