tessera_test(core/ops_dense
  LIBRARIES tessera_test_support DNNL::dnnl
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/conv2d_algorithms_test.cpp ${CMAKE_CURRENT_LIST_DIR}/conv2d_relu_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/dense_contract_test.cpp ${CMAKE_CURRENT_LIST_DIR}/dense_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/linear_test.cpp ${CMAKE_CURRENT_LIST_DIR}/matmul_algorithms_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/../cpu/matmul_memory_test.cpp ${CMAKE_CURRENT_LIST_DIR}/../cpu/onednn_memory_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/../cpu/winograd_test.cpp)
