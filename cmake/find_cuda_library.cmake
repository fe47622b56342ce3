# For the find modules of libraries that come with the CUDA toolkit or beside it. CMake has no modules for these:
#   tessera_find_cuda_library(<NAME> <library> <header of the version> <name of the last number>)
# sets <NAME>_FOUND, <NAME>_INCLUDE_DIR, <NAME>_LIBRARY and <NAME>_VERSION, and makes the target <NAME>::<library>. <NAME>_ROOT is searched
# first, then the toolkit's folders.
include(FindPackageHandleStandardArgs)

macro(tessera_find_cuda_library name library version_header last)
  find_path(${name}_INCLUDE_DIR ${library}.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(${name}_LIBRARY ${library} HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib)
  if(${name}_INCLUDE_DIR)
    file(STRINGS ${${name}_INCLUDE_DIR}/${version_header} lines REGEX "^#define ${name}_(MAJOR|MINOR|${last}) +[0-9]+")
    string(REGEX REPLACE "[^0-9]*([0-9]+)[^0-9]+([0-9]+)[^0-9]+([0-9]+).*" "\\1.\\2.\\3" ${name}_VERSION "${lines}")
  endif()
  find_package_handle_standard_args(${name} REQUIRED_VARS ${name}_LIBRARY ${name}_INCLUDE_DIR VERSION_VAR ${name}_VERSION)
  if(${name}_FOUND AND NOT TARGET ${name}::${library})
    add_library(${name}::${library} UNKNOWN IMPORTED)
    set_target_properties(${name}::${library} PROPERTIES IMPORTED_LOCATION ${${name}_LIBRARY}
                          INTERFACE_INCLUDE_DIRECTORIES ${${name}_INCLUDE_DIR})
  endif()
  mark_as_advanced(${name}_INCLUDE_DIR ${name}_LIBRARY)
endmacro()
