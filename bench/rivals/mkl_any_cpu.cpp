// Loaded before PyTorch on processors that are not Intel's. The MKL inside its wheels asks this function, and keeps to AVX2 where
// it answers no, whatever the processor can do.
extern "C" int mkl_serv_intel_cpu_true();
extern "C" int mkl_serv_intel_cpu_true() { return 1; }
