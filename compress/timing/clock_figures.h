// What a run writes of a clock's readings. Two runs that are otherwise equal differ in it: comparisons leave it out.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

// Whether a column of layers.csv holds a time, or a ratio of times.
bool is_clock_column(std::string_view column);

// Of a recorded decision: of a timing (speed.h) the word that decides, "faster" or "not-faster"; another choice as it is.
std::string without_times(std::string_view key, const std::string& choice);

// A layer's reason, or report.md, with SPEED in the place of every speed: "not faster: SPEED at batch 128, ...".
std::string without_speeds(const std::string& text);

}  // namespace tessera
