# The core convolution's planner and index arithmetic, walked on the host.
tessera_test_program(test_core_cuda_core_conv core/cuda LIBRARIES tessera_core SOURCES core_conv_test.cpp core_conv_walk.cpp)

# No kernel of these may spill or keep a stack: register arrays that are indexed at run time do. Needs nvcc, no GPU.
if(TESSERA_HAS_CUDA AND CMAKE_CUDA_COMPILER)
  set(kernel_sources cuda/core_conv/gather_full.cu cuda/core_conv/gather_full_by_two.cu cuda/core_conv/gather_partial.cu
                     cuda/core_conv/weight_gradient.cu ops/tucker_conv_cuda.cu ops/tucker_conv_cuda_tensor.cu
                     ops/tucker_conv_cuda_weights.cu)
  list(TRANSFORM kernel_sources PREPEND ${PROJECT_SOURCE_DIR}/core/)
  string(JOIN " " kernel_flags ${CMAKE_CUDA_FLAGS} ${CMAKE_CUDA_FLAGS_RELEASE} -std=c++20 --expt-relaxed-constexpr
              --expt-extended-lambda -DTESSERA_HAS_CUDA=1 -I${PROJECT_SOURCE_DIR})
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_test(NAME kernel_resources
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/kernel_resources.py
                   --nvcc ${CMAKE_CUDA_COMPILER} --architectures 80 90 "--flags=${kernel_flags}" -- ${kernel_sources})
  add_test(NAME kernel_resources_self_test
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/kernel_resources.py --self-test)
  set_tests_properties(kernel_resources PROPERTIES LABELS slow TIMEOUT 540)
  set_tests_properties(kernel_resources_self_test PROPERTIES LABELS unit TIMEOUT 60)
endif()
