// Text inside HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

// As it may stand between tags and in an attribute's quotes: & < > " ' by name, and control characters, which XML forbids, as
// U+FFFD. Line breaks and tabs stay.
std::string escaped(std::string_view text);

// A frame that scrolls what is wider than the page. The keys reach it, and screen readers tell the label.
std::string scroll_frame(std::string_view label, std::string_view markup);
// Text as it is, in such a frame. An element of this id where one is given.
std::string text_frame(std::string_view label, std::string_view text, std::string_view id = {});

}  // namespace tessera
