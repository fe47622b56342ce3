# cuDNN 9: target CUDNN::cudnn, CUDNN_VERSION.
include(${CMAKE_CURRENT_LIST_DIR}/find_cuda_library.cmake)
tessera_find_cuda_library(CUDNN cudnn cudnn_version.h PATCHLEVEL)
