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
