tessera_test(core/cuda/tucker_conv LIBRARIES tessera_core SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/tucker_conv_plan_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/tucker_conv_support.cpp
  ${CMAKE_CURRENT_LIST_DIR}/tucker_conv_test.cpp)

if(TESSERA_HAS_CUDA)
  tessera_gpu_test(tucker_conv LIBRARIES tessera_test_support SOURCES ${CMAKE_CURRENT_LIST_DIR}/tucker_conv_gpu_test.cpp)
endif()
