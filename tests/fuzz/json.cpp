#include "core/config/value.h"
#include "core/support/error.h"
#include "tests/fuzz/targets.h"

namespace tessera::fuzz {

void json(std::string_view bytes) {
  Value value;
  try {
    value = parse_json(bytes, "fuzz.json");
  } catch (const IoError&) {
    return;
  }
  for (const int indent : {-1, 2}) {
    const std::string written = to_json(value, indent);
    const Value again = parse_json(written, "again");
    require(again == value, "a value changed when written and read");
    require(to_json(again, indent) == written, "the same value gave other text");
  }
}

std::vector<std::string> json_seeds() {
  return {R"({"a": [1, -2, 0.5, 1e300, -0.0, true, false, null, "text"], "b": {"c": {}}, "d": []})",
          R"("\u00e9\ud83d\ude00\"\\\/\b\f\n\r\t")", "[[[[[[[[9223372036854775807]]]]]]]]", R"({"":-9223372036854775808})", "3"};
}

}  // namespace tessera::fuzz
