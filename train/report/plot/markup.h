// Text inside HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

// As it may stand between tags and in an attribute's quotes: & < > " ' by name, and control characters, which XML forbids, as
// U+FFFD. Line breaks and tabs stay.
std::string escaped(std::string_view text);

}  // namespace tessera
