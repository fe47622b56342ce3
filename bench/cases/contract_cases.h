// A contraction as it is planned, beside the way that copies: operands permuted to matrices, one GEMM, the result permuted back.
#pragma once

#include <cstdint>
#include <set>
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

// How the rival's copies in all these cases order the axes of what they copy: "201".
std::set<std::string> copied_orders();

// That guards the rival: its copy of a cube, which has to reach kPermuteShare of the streaming bandwidth where no cache holds it.
// The line is measure_memory()'s, with streams of `megabytes`: op permute, the order as pass, and the rival's time as tessera_ms.
// Throws NumericError where the copy is wrong.
inline constexpr double kPermuteShare = 0.8;
inline constexpr std::int64_t kPermuteSize = 256;  // 64 MiB
Value measure_permute(const std::string& order, std::int64_t size, std::int64_t megabytes, const TurnOptions& turns);

// Throws NumericError when the two compute different things. The line: op (contract), equation, kind, size, plan, rounds;
// contract and rival as {name, ms}; copies, how many tensors the rival copies, and permutes, their orders; ratio (rival /
// contract).
Value measure_contract(const ContractCase& of, std::int64_t size, const TurnOptions& turns);

}  // namespace tessera::bench
