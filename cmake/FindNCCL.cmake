# NCCL 2: target NCCL::nccl, NCCL_VERSION.
include(${CMAKE_CURRENT_LIST_DIR}/find_cuda_library.cmake)
tessera_find_cuda_library(NCCL nccl nccl.h PATCH)
