target_sources(tessera_layers PRIVATE ${CMAKE_CURRENT_LIST_DIR}/tucker2_conv2d.cpp)
