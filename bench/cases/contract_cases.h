// A contraction as it is planned, beside the way that copies: operands permuted to matrices, one GEMM, the result permuted back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/turns.h"

namespace tessera::bench {

// C[p, n, m], of one free index in A and two in B and one contracted index, all of size n, f32.
struct ContractCase {
  std::string kind;  // "gemm", "batched" or "exceptional": how it is planned (core/linalg/contract.h)
  std::string equation;  // "km,nkp->pnm"
};

// A third of the 36 single-index cases of Shi et al., HiPC 2016, table 2, of each kind about as many as it has among them.
std::vector<ContractCase> contract_cases();

// Throws NumericError when the two compute different things. The line: op (contract), equation, kind, size, plan, rounds;
// contract and rival as {name, ms}; copies, how many tensors the rival copies; ratio (rival / contract).
Value measure_contract(const ContractCase& of, std::int64_t size, const TurnOptions& turns);

}  // namespace tessera::bench
