# Every dependency is a Debian 12 package; scripts/install_dependencies installs them.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(Threads REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(utf8proc REQUIRED libutf8proc)
pkg_check_modules(sentencepiece REQUIRED sentencepiece)

find_package(dnnl REQUIRED CONFIG)
if(NOT dnnl_VERSION VERSION_GREATER_EQUAL 2 OR dnnl_VERSION VERSION_GREATER_EQUAL 3)
  message(FATAL_ERROR "tessera needs oneDNN 2.x (Debian package libdnnl-dev), found ${dnnl_VERSION}: "
                      "version 3 changed the primitive descriptor interface")
endif()

