#include "bench/rivals/sklearn_rival.h"

#include "bench/result_lines.h"
#include "core/cpu/isa.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

std::vector<std::string> arguments(const SklearnProgram& program) {
  TESSERA_CHECK(std::filesystem::exists(program.python), ConfigError, "scikit-learn: there is no interpreter ", program.python,
                "; name another with --python");
  return {program.python, program.script};
}

// Sets the variables of every BLAS that numpy may use. On processors newer than itself OpenBLAS multiplies with AVX2. The name of
// an older processor makes it use AVX-512 there.
std::vector<std::string> environment_for(const SklearnProgram& program) {
  std::vector<std::string> environment{str("OMP_NUM_THREADS=", program.threads), str("OPENBLAS_NUM_THREADS=", program.threads),
                                       str("MKL_NUM_THREADS=", program.threads), "OMP_WAIT_POLICY",
                                       "LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp"};
  if (cpu::choose_isa("") == cpu::Isa::avx512) environment.emplace_back("OPENBLAS_CORETYPE=SkylakeX");
  return environment;
}

std::string words(const SklearnWay& way, std::int64_t rank) { return str(rank, ' ', way.oversampling, ' ', way.iterations); }

}  // namespace

SklearnRival::SklearnRival(const SklearnProgram& program)
    : threads_(program.threads),
      child_(arguments(program), environment_for(program)),
      environment_(parse_json(child_.read_line(), "scikit-learn")) {
  const Value* const missing = environment_.find("missing");
  TESSERA_CHECK(missing == nullptr, ConfigError, "scikit-learn: ", program.python,
                " cannot import it: ", missing ? missing->as_string() : std::string(),
                "; install Debian's python3-sklearn or name another interpreter with --python");
  TESSERA_CHECK(!environment_.at("blas").as_list().empty(), InternalError, "scikit-learn: ", program.python,
                " multiplies by no BLAS with threads: not a fair rival");
}

Value SklearnRival::ask(const std::string& line) { return child_.ask(line, "scikit-learn"); }

void SklearnRival::load(const std::filesystem::path& file, std::int64_t n) { ask(str("load ", n, ' ', file.string())); }

double SklearnRival::matmul_gflops() { return ask("matmul").at("gflops").as_double(); }

double SklearnRival::relative_error(const SklearnWay& way, std::int64_t rank) {
  return ask("error " + words(way, rank)).at("error").as_double();
}

std::vector<double> SklearnRival::run(const SklearnWay& way, std::int64_t rank, std::int64_t count) {
  return numbers(ask(str("time ", words(way, rank), ' ', count)).at("ms"));
}

}  // namespace tessera::bench
