#include "core/config/suggest.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace tessera {
namespace {

TEST(EditDistance, CountsEachKindOfEditOnce) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", "ab"), 1);
  EXPECT_EQ(edit_distance("abc", "axc"), 1);
  EXPECT_EQ(edit_distance("abc", "acb"), 1);
  EXPECT_EQ(edit_distance("ca", "abc"), 3);  // it would be 2 if a swapped pair could be edited again
  EXPECT_EQ(edit_distance("rnaks", "ranks"), 1);
}

RC_GTEST_PROP(EditDistance, IsSymmetricAndBoundedByLength, (const std::string& a, const std::string& b)) {
  RC_ASSERT(edit_distance(a, b) == edit_distance(b, a));
  RC_ASSERT(edit_distance(a, b) <= static_cast<int>(std::max(a.size(), b.size())));
  RC_ASSERT((edit_distance(a, b) == 0) == (a == b));
}

TEST(NearestNames, SortsByDistanceAndStopsAtMost) {
  const std::vector<std::string_view> known{"momentum", "lr", "learning_rate", "moments"};
  EXPECT_EQ(nearest_names("momentun", known), (std::vector<std::string>{"momentum", "moments"}));
  EXPECT_EQ(nearest_names("momentun", known, 1), (std::vector<std::string>{"momentum"}));
  EXPECT_TRUE(nearest_names("dropout", known).empty());
}

TEST(NearestNames, TakesPrefixesButNotEverythingForNothing) {
  const std::vector<std::string_view> known{"learning_rate", "lr"};
  EXPECT_EQ(nearest_names("learn", known), (std::vector<std::string>{"learning_rate"}));
  EXPECT_TRUE(nearest_names("", known).empty());
}

}  // namespace
}  // namespace tessera
