# Installs a build to an empty prefix, then configures, builds and runs the consumer against that prefix alone.
# Usage: cmake -D BUILD_DIR=... -D WORK_DIR=... -D VERSION=... -D BUILD_TYPE=... -D CXX_FLAGS=... -P run.cmake
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)

# Flags of the tree's own targets that reach a consumer would make its warnings errors.
file(GLOB exported ${WORK_DIR}/prefix/lib/*/cmake/tessera/*.cmake ${WORK_DIR}/prefix/lib/cmake/tessera/*.cmake)
foreach(file IN LISTS exported)
  file(STRINGS ${file} leaked REGEX "tessera_compiler|-Werror|-Wall")
  if(leaked)
    message(FATAL_ERROR "${file} leaks the tree's own compiler flags: ${leaked}")
  endif()
endforeach()

run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK_DIR}/build -G Ninja -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix
    -D CMAKE_BUILD_TYPE=${BUILD_TYPE} "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}" -D TESSERA_EXPECTED_VERSION=${VERSION})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${WORK_DIR}/build/consumer)

# The C interface, where the build has it, found by pkg-config alone.
file(GLOB_RECURSE pc ${WORK_DIR}/prefix/tessera.pc)
if(pc)
  get_filename_component(folder ${pc} DIRECTORY)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} pkg-config --cflags --libs "tessera = ${VERSION}"
                  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  cmake_path(GET folder PARENT_PATH libraries)
  run(cc -std=c99 -Wall -Wextra -pedantic -Werror ${CMAKE_CURRENT_LIST_DIR}/../../examples/c/classify.c
      -o ${WORK_DIR}/build/classify ${flags} -Wl,-rpath,${libraries})
  execute_process(COMMAND ${WORK_DIR}/build/classify ${WORK_DIR}/none ${WORK_DIR}/build/classify
                  ERROR_VARIABLE said RESULT_VARIABLE code)
  if(NOT code EQUAL 1 OR NOT said MATCHES "^classify: tessera_load: there is no ${WORK_DIR}/none; needs a run folder")
    message(FATAL_ERROR "classify of the installed libtessera exits with ${code} and says: ${said}")
  endif()
  if(NOT EXISTS ${WORK_DIR}/prefix/share/tessera/python/tessera_run.py)
    message(FATAL_ERROR "the Python module of libtessera is not installed")
  endif()
endif()
