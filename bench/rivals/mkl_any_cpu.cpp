// Preloaded for PyTorch on processors that are not Intel's. The MKL inside its wheels calls this function. If the answer is no,
// MKL uses at most AVX2, whatever the processor supports.
extern "C" int mkl_serv_intel_cpu_true();
extern "C" int mkl_serv_intel_cpu_true() { return 1; }
