# Language level, baseline ISA, warnings and sanitizers, carried by one interface target that every tessera target links.
if(CMAKE_CXX_COMPILER_LAUNCHER STREQUAL "" OR NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TESSERA_CCACHE ccache)
  if(TESSERA_CCACHE)
    # What ccache asks for where headers are precompiled: no source here uses __DATE__ or __TIME__.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${TESSERA_CCACHE})
  endif()
endif()

# Precompiled are headers of the standard library and of other libraries alone: every source includes what it uses, and compiles
# without this. <iostream> is not among them, which would give each object a constructor.
option(TESSERA_PCH "Precompile the headers that most sources include" ON)
set(TESSERA_STANDARD_HEADERS <algorithm> <array> <cmath> <cstddef> <cstdint> <filesystem> <functional> <map> <memory> <optional>
                             <set> <span> <sstream> <stdexcept> <string> <string_view> <utility> <vector>)
# tessera_precompile(<target> <header> ...) or tessera_precompile(<target> REUSE_FROM <target with the same flags>).
function(tessera_precompile target)
  if(NOT TESSERA_PCH)
    return()
  endif()
  if(ARGV1 STREQUAL "REUSE_FROM")
    target_precompile_headers(${target} REUSE_FROM ${ARGV2})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
  # Both for ccache: it reads which headers a file includes, and knows a precompiled one by its content.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>
                                           "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endfunction()

add_library(tessera_compiler INTERFACE)
target_compile_features(tessera_compiler INTERFACE cxx_std_20)
set(TESSERA_WARNINGS -Wall -Wextra -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough)
target_compile_options(tessera_compiler INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-march=x86-64-v3 ${TESSERA_WARNINGS} -Wshadow -Werror>
  # Numbers are the CPU's: no flush of subnormals, exact divisions and roots, which are nvcc's defaults. Functions of the standard
  # library that are constexpr run on the device.
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-march=x86-64-v3 "-Xcompiler=$<JOIN:${TESSERA_WARNINGS},$<COMMA>>" --expt-relaxed-constexpr
                             --expt-extended-lambda --Werror=all-warnings>)
if(TESSERA_SANITIZE)
  target_compile_options(tessera_compiler INTERFACE -fsanitize=${TESSERA_SANITIZE} -fno-omit-frame-pointer
                                                    -fno-sanitize-recover=all
                         # Instrumentation makes this warning unreliable, here in libstdc++'s <regex>.
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
                         # It also keeps loops that ask for it from being vectorised, and clang would warn of that.
                         $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)
  target_link_options(tessera_compiler INTERFACE -fsanitize=${TESSERA_SANITIZE})
endif()

# Marks sources whose maths survives reassociation and flushes neither NaN tests nor error checks away.
# Divisions stay exact: the approximate reciprocal turns 1 / Inf into NaN. Applied per file;
# never at link, where it would change the floating-point environment of the whole program.
# Precompiled headers are those of the target's own flags. Source properties hold in the directory of the target that compiles the
# file, so they are set in all of them.
function(tessera_fast_math)
  get_property(targets GLOBAL PROPERTY TESSERA_LIBRARIES)
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ${targets}
                              PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "-ffast-math;-mrecip=none;-fopenmp-simd")
endfunction()

# Shared libraries keep many programs small: scripts/gpu_bundle packs each kernel once. They find each other in the build tree,
# and in lib/ of an unpacked bundle, whose programs lie in build/cuda/bin. A program may name symbols of what a library links for
# itself, as it may where the libraries are static.
option(TESSERA_SHARED "Build shared libraries, for scripts/gpu_bundle" OFF)
set(TESSERA_LIBRARY_TYPE STATIC)
if(TESSERA_SHARED)
  set(TESSERA_LIBRARY_TYPE SHARED)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # one of the process; nvcc's default puts one into each library with kernels
  list(APPEND CMAKE_BUILD_RPATH "$ORIGIN" "$ORIGIN/../../../lib")
  add_link_options(-Wl,--copy-dt-needed-entries)
endif()

# libtessera.so (capi/). Position-independent code is another set of objects, and so a build of its own: the preset c-library.
# What the libraries define is not replaced by programs, so that their functions may be inlined as in a build without it.
option(TESSERA_C_LIBRARY "Build libtessera.so, the C interface for other programs" OFF)

function(tessera_position_independent target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-semantic-interposition>)
endfunction()

# One library per folder. Sources are listed by the folder and its subfolders with target_sources.
function(tessera_library folder)
  add_library(tessera_${folder} ${TESSERA_LIBRARY_TYPE})
  add_library(tessera::${folder} ALIAS tessera_${folder})
  target_include_directories(tessera_${folder} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tessera>)
  target_link_libraries(tessera_${folder} PUBLIC ${ARGN} PRIVATE $<BUILD_INTERFACE:tessera_compiler>)
  target_compile_features(tessera_${folder} PUBLIC cxx_std_20)
  set_target_properties(tessera_${folder} PROPERTIES CUDA_STANDARD 20 CUDA_SEPARABLE_COMPILATION OFF)
  # The symbol of shared libraries, which no source reads, is one for all, as their precompiled header is.
  set_target_properties(tessera_${folder} PROPERTIES EXPORT_NAME ${folder} DEFINE_SYMBOL tessera_core_EXPORTS)
  if(TESSERA_C_LIBRARY)
    tessera_position_independent(tessera_${folder})
  endif()
  if(folder STREQUAL "core")
    tessera_precompile(tessera_core ${TESSERA_STANDARD_HEADERS})
  else()
    tessera_precompile(tessera_${folder} REUSE_FROM tessera_core)
  endif()
  set_property(GLOBAL APPEND PROPERTY TESSERA_LIBRARIES tessera_${folder})
endfunction()
