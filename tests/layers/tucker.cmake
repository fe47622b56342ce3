tessera_test(layers_tucker LIBRARIES tessera_layers SOURCES ${CMAKE_CURRENT_LIST_DIR}/tucker2_test.cpp)
