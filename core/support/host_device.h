// Marks what both the host compiler and nvcc build, for either side.
#pragma once

// Where kernels are compiled, and where a statement runs as a thread of one: by nvcc, in its pass for the device, and for the
// simulated GPU of the tests.
#if defined(__CUDACC__) || defined(TESSERA_SIMULATED_GPU)
#define TESSERA_KERNELS 1
#else
#define TESSERA_KERNELS 0
#endif
#if defined(__CUDA_ARCH__) || defined(TESSERA_SIMULATED_GPU)
#define TESSERA_ON_DEVICE 1
#else
#define TESSERA_ON_DEVICE 0
#endif

#if defined(__CUDACC__)
#define TESSERA_HD __host__ __device__
#define TESSERA_INLINE TESSERA_HD __forceinline__
#else
#define TESSERA_HD
#define TESSERA_INLINE inline
#endif

// In front of loops over arrays that must stay in registers on a GPU, and of loops that may be unrolled no further. The host
// compiler does not know these pragmas.
#if defined(__CUDA_ARCH__)
#define TESSERA_PRAGMA(text) _Pragma(#text)
#define TESSERA_UNROLL TESSERA_PRAGMA(unroll)
#define TESSERA_UNROLL_BY(times) TESSERA_PRAGMA(unroll(times))
#define TESSERA_NO_UNROLL TESSERA_PRAGMA(unroll 1)
#else
#define TESSERA_UNROLL
#define TESSERA_UNROLL_BY(times)
#define TESSERA_NO_UNROLL
#endif
