# Helpers that keep the per-folder CMake files to a list of sources.

add_library(tpusim_options INTERFACE)
target_compile_options(tpusim_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wno-sign-compare
  # GCC 12 at -O3 sees overlaps in string concatenation and uninitialised
  # members of StatusOr that are not there.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-maybe-uninitialized>
  # Results must not depend on whether the machine fuses multiply-adds.
  -ffp-contract=off)
if(TPUSIM_WERROR)
  target_compile_options(tpusim_options INTERFACE -Werror)
endif()
target_include_directories(tpusim_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})

# tpusim_library(NAME SOURCES a.cc b.cc DEPS x y): one folder of the tree.
function(tpusim_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC tpusim_options ${ARG_DEPS})
endfunction()

# tpusim_test(NAME SOURCES a_test.cc DEPS x y [LABELS long]): every test case is
# its own process (gtest_discover_tests), because SystemC can elaborate only
# one simulation per process.
function(tpusim_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  # The code of the tests itself is run once: optimising it costs more than it saves.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_compile_definitions(${name} PRIVATE TPUSIM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  gtest_discover_tests(${name} PROPERTIES LABELS "${ARG_LABELS}" DISCOVERY_TIMEOUT 60)
endfunction()
