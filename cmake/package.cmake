# cmake --install: the program, the libraries, the headers, and what find_package(tessera) reads.
include(CMakePackageConfigHelpers)

# tessera::tessera is all of it; tessera::core and the other folders can be linked one by one.
get_property(TESSERA_LIBRARIES GLOBAL PROPERTY TESSERA_LIBRARIES)
add_library(tessera_all INTERFACE)
add_library(tessera::tessera ALIAS tessera_all)
target_link_libraries(tessera_all INTERFACE ${TESSERA_LIBRARIES})
set_target_properties(tessera_all PROPERTIES EXPORT_NAME tessera)
install(TARGETS tessera_all ${TESSERA_LIBRARIES} EXPORT tesseraTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

# The program, when this configuration builds one.
if(TARGET tessera)
  install(TARGETS tessera RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# Includes are written from the root of the tree, so the tree is kept below include/tessera.
foreach(library IN LISTS TESSERA_LIBRARIES)
  string(REPLACE tessera_ "" folder ${library})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tessera
          FILES_MATCHING PATTERN "*.h" PATTERN "reference" EXCLUDE PATTERN "mpi_communicator.h" EXCLUDE)
endforeach()

install(FILES ${PROJECT_BINARY_DIR}/generated/core/device/backends.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tessera/core/device)

set(TESSERA_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)
install(EXPORT tesseraTargets NAMESPACE tessera:: DESTINATION ${TESSERA_CMAKE_DIR})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/tesseraConfig.cmake.in ${PROJECT_BINARY_DIR}/tesseraConfig.cmake
                              INSTALL_DESTINATION ${TESSERA_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tesseraConfig.cmake ${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake
        DESTINATION ${TESSERA_CMAKE_DIR})
if(TESSERA_HAS_CUDA)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/FindCUDNN.cmake ${PROJECT_SOURCE_DIR}/cmake/find_cuda_library.cmake
          DESTINATION ${TESSERA_CMAKE_DIR})
endif()
