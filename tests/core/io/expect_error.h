// A throw of IoError whose message holds the given texts.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "core/support/error.h"

namespace tessera {

template <class Call>
void expect_io_error(Call&& call, std::initializer_list<std::string_view> texts) {
  try {
    call();
    ADD_FAILURE() << "nothing thrown; expected IoError with '" << *texts.begin() << "'";
  } catch (const IoError& error) {
    for (const std::string_view text : texts) {
      EXPECT_NE(std::string_view(error.what()).find(text), std::string_view::npos) << error.what() << "\n  lacks: " << text;
    }
  }
}

}  // namespace tessera
