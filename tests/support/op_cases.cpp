#include "tests/support/op_cases.h"

#include <iterator>

namespace tessera::testing {
namespace {

void append(std::vector<OpCase>& all, std::vector<OpCase> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

std::vector<OpCase> all_op_cases() {
  std::vector<OpCase> all = elementwise_op_cases();
  append(all, reduction_op_cases());
  append(all, view_op_cases());
#ifdef TESSERA_TEST_DENSE_CASES
  append(all, dense_op_cases());
#endif
  return all;
}

}  // namespace tessera::testing
