# Everything comes from Debian packages; tools/install lists them.
find_package(Protobuf REQUIRED)
find_package(absl REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(SQLite3 REQUIRED)
# Programs are millions of small objects: compiling them takes a third less time with it.
find_package(mimalloc QUIET)

# What the pages of --html draw with; Debian's package node-d3 has it minified in one file.
find_file(TPUSIM_D3 d3.min.js PATHS /usr/share/nodejs/d3/dist NO_DEFAULT_PATH REQUIRED)

# Debian's SystemC ships a plain library without a CMake package. It was built
# as C++17 and encodes that in its link-time API check, so every user of its
# headers has to claim the same standard, whatever it compiles as.
find_library(SYSTEMC_LIBRARY systemc REQUIRED)
find_path(SYSTEMC_INCLUDE_DIR systemc REQUIRED)
add_library(SystemC::systemc INTERFACE IMPORTED)
set_target_properties(SystemC::systemc PROPERTIES
  INTERFACE_LINK_LIBRARIES "${SYSTEMC_LIBRARY}"
  INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${SYSTEMC_INCLUDE_DIR}"
  # The library calls sc_main, which is ours (models/events/fluid.cc): linked in even
  # where nothing else of that file is asked for.
  INTERFACE_LINK_OPTIONS "LINKER:--undefined=sc_main"
  INTERFACE_COMPILE_DEFINITIONS "SC_CPLUSPLUS=201703L;SC_DISABLE_API_VERSION_CHECK")

if(TPUSIM_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(TPUSIM_BUILD_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without this ccache keeps nothing that was compiled with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${CCACHE_PROGRAM})
endif()
