target_sources(tessera_core PRIVATE
  ${CMAKE_CURRENT_LIST_DIR}/batch_norm.cpp
  ${CMAKE_CURRENT_LIST_DIR}/batch_norm_cpu.cpp
  ${CMAKE_CURRENT_LIST_DIR}/batch_norm_statistics_cpu.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conv2d.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conv2d_cpu.cpp
  ${CMAKE_CURRENT_LIST_DIR}/conv2d_plan_cpu.cpp
  ${CMAKE_CURRENT_LIST_DIR}/dense_operands.cpp
  ${CMAKE_CURRENT_LIST_DIR}/layer_norm.cpp
  ${CMAKE_CURRENT_LIST_DIR}/layer_norm_cpu.cpp
  ${CMAKE_CURRENT_LIST_DIR}/linear.cpp
  ${CMAKE_CURRENT_LIST_DIR}/linear_cpu.cpp
  ${CMAKE_CURRENT_LIST_DIR}/matmul.cpp
  ${CMAKE_CURRENT_LIST_DIR}/matmul_cpu.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pool2d.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pool2d_cpu.cpp
  ${CMAKE_CURRENT_LIST_DIR}/tucker_conv.cpp)
