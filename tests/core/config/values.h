// Random configuration trees for round trips.
#pragma once

#include <rapidcheck.h>

#include <cmath>
#include <string>

#include "core/config/value.h"

namespace tessera::test {

// Texts that formats are known to trip over, and random printable ones.
inline rc::Gen<std::string> any_text() {
  return rc::gen::oneOf(
      rc::gen::element<std::string>("", " ", "a b", "true", "False", "yes", "off", "null", "~", "1", "-1", "010", "0x1f", "1e3",
                                    ".5", "5.", ".inf", ".NaN", "1_000", "12:30", "2020-01-01", "- a", "-", "a: b", "a:", ": a",
                                    "#x", "a #b", "[a", "{b}", "a,b", "]", "*x", "&x", "!t", "|", ">", "%x", "@x", "`", "'", "\"",
                                    "it's", "\\", "\\n", "a\nb", "\n", "a\n", "\t", " a", "a ", "\r\n", "---", "...", "? a", "?",
                                    "<<", "=", "${HOME}", "$${", "$$${x}", "${", "\x01\x7f", "\u00e9", "\u2028", "\u00a0",
                                    "\ufeff", "\U0001f600"),
      rc::gen::container<std::string>(rc::gen::inRange<char>(32, 127)));
}

inline rc::Gen<double> any_real() {
  return rc::gen::oneOf(rc::gen::arbitrary<double>(),
                        rc::gen::map(rc::gen::arbitrary<float>(), [](float x) { return double(x); }),
                        rc::gen::element(0.0, -0.0, 1.0, 1e22, 5e-324, 1.7976931348623157e308, 0.1, 1e-7, 123456789012345680.0));
}

// Without NaN, which is unequal to itself, and infinities, which have no form of their own in the formats.
inline Value any_value(int depth = 4) {
  switch (*rc::gen::inRange(0, depth > 0 ? 8 : 5)) {
    case 0: return {};
    case 1: return *rc::gen::arbitrary<bool>();
    case 2: return *rc::gen::arbitrary<std::int64_t>();
    case 3: return *rc::gen::suchThat(any_real(), [](double x) { return std::isfinite(x); });
    case 4: return *any_text();
    case 5: {
      Value map = Value::map();
      for (int i = *rc::gen::inRange(0, 5); i > 0; --i) {
        map.set(*rc::gen::suchThat(any_text(), [](const std::string& key) { return !key.empty(); }), any_value(depth - 1));
      }
      return map;
    }
    default: {
      Value list = Value::list();
      for (int i = *rc::gen::inRange(0, 5); i > 0; --i) list.as_list().push_back(any_value(depth - 1));
      return list;
    }
  }
}

}  // namespace tessera::test
