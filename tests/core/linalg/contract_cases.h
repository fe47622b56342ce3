// Equations that the tests of contractions run on every device, and their operands.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "tests/core/linalg/linalg_support.h"

namespace tessera::testing {

// Operands of random numbers for an equation of two, by the sizes of its indices.
inline std::vector<Tensor> operands_of(const std::string& equation, const std::map<char, std::int64_t>& sizes, DType dtype) {
  std::vector<Tensor> operands;
  std::vector<std::int64_t> shape;
  for (const char c : equation.substr(0, equation.find("->")) + ",") {
    if (c != ',') {
      shape.push_back(sizes.at(c));
      continue;
    }
    operands.push_back(random_tensor(Shape(std::span<const std::int64_t>(shape)), dtype, operands.size() + 1));
    shape.clear();
  }
  return operands;
}

inline std::string reversed(std::string text) {
  std::ranges::reverse(text);
  return text;
}

enum class ContractClass { gemm, batched, exceptional };

struct SingleIndexCase {
  std::string equation;
  ContractClass expected;
};

// Shi et al., table 2: C_mnp = A B, where A has k and one free index and B has k and the other two, in each order. Six orders of
// B stand beside each A: those of a flattened product, of a batched one and the exceptional ones. Columns run fastest there and
// rows here, so that each name is read from its end.
inline std::vector<SingleIndexCase> table_2() {
  struct Line {
    std::string a[2], b[6], kinds;  // G: one GEMM, S: one strided-batched GEMM, E: exceptional
  };
  const std::vector<Line> lines{{{"mk", "km"}, {"knp", "kpn", "nkp", "pkn", "npk", "pnk"}, "GSSSGS"},
                                {{"nk", "kn"}, {"kmp", "kpm", "mkp", "pkm", "mpk", "pmk"}, "SSSESE"},
                                {{"pk", "kp"}, {"kmn", "knm", "mkn", "nkm", "mnk", "nmk"}, "GSSEGE"}};
  std::vector<SingleIndexCase> cases;
  for (const Line& line : lines) {
    for (const std::string& a : line.a) {
      for (std::size_t i = 0; i < 6; ++i) {
        const char kind = line.kinds[i];
        cases.push_back({reversed(a) + ',' + reversed(line.b[i]) + "->pnm", kind == 'G'   ? ContractClass::gemm
                                                                            : kind == 'S' ? ContractClass::batched
                                                                                          : ContractClass::exceptional});
      }
    }
  }
  return cases;
}

// What a plan with the copies that no plan goes without comes to.
struct CountedCase {
  std::string equation;
  std::int64_t calls, batch;
  int loops, copies;
};

inline const std::map<char, std::int64_t> kCountedSizes{{'b', 2}, {'c', 3}, {'i', 4}, {'j', 5}, {'k', 6},
                                                        {'l', 7}, {'m', 8}, {'n', 9}, {'p', 10}};

inline const std::vector<CountedCase> kCounted{
    {"k,k->", 1, 1, 0, 0},  // a scalar
    {"m,n->mn", 1, 1, 0, 0},  // an outer product
    {"m,n->nm", 1, 1, 0, 0},  // with the result's rows free in the right operand
    {",mn->mn", 1, 1, 0, 0},  // a scalar operand
    {"m,m->m", 1, 8, 0, 0},  // nothing but a batch index
    {"mkl,kln->mn", 1, 1, 0, 0},  // contracted indices that flatten
    {"mkl,lkn->mn", 1, 1, 0, 1},  // that do not, as they lie
    {"kml,nlk->mn", 1, 1, 0, 1},  // one operand has them side by side
    {"kml,lnkp->pmn", 1, 10, 0, 2},  // neither has
    {"mij,ijn->nm", 1, 1, 0, 0},  // a transposed result
    {"bmk,bkn->bmn", 1, 2, 0, 0},  // a batch of products
    {"mbk,kbn->bmn", 1, 2, 0, 0},  // wherever the batch index lies in the middle
    {"bcmk,bckn->bcmn", 1, 6, 0, 0},  // batch indices that flatten
    {"bcmk,cbkn->bcmn", 2, 3, 1, 0},  // that do not: a loop
    {"bmk,kpn->bpmn", 2, 10, 1, 0},  // two free indices that are left, because the result parts m and n from theirs
    {"kmb,knb->mnb", 1, 2, 0, 3},  // the batch index lies everywhere where a product's own should be
    {"mk,kijl->mjil", 4, 5, 1, 0},
};

}  // namespace tessera::testing
