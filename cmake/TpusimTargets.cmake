# Helpers that keep the per-folder CMake files to a list of sources.

add_library(tpusim_options INTERFACE)
target_compile_options(tpusim_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wno-sign-compare
  # GCC 12 sees overlaps in string concatenation and uninitialised
  # members of StatusOr that are not there.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-maybe-uninitialized>
  # Results must not depend on whether the machine fuses multiply-adds.
  -ffp-contract=off)
# Internal errors say where they are in the tree (configs/status_macros.h), not on which machine and
# where it was built.
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options(tpusim_options INTERFACE
    -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/= -fmacro-prefix-map=${PROJECT_BINARY_DIR}/=build/)
endif()
if(TPUSIM_WERROR)
  target_compile_options(tpusim_options INTERFACE -Werror)
endif()
if(CMAKE_UNITY_BUILD)
  # A class of one .cc file may hold what is local to that file; seen from the file that includes
  # several of them, GCC takes it for a header, and names of one file shadow those of another.
  target_compile_options(tpusim_options INTERFACE
    -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
target_include_directories(tpusim_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})

# tpusim_embed(OUTPUT x.cc FILES a.json b.json): files of the tree become string literals, which
# configs/embedded_files.h declares, so that the binary needs no data folder.
function(tpusim_embed)
  cmake_parse_arguments(ARG "" "OUTPUT" "FILES" ${ARGN})
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake)
  add_custom_command(
    OUTPUT ${ARG_OUTPUT}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${ARG_FILES}" -DOUTPUT=${ARG_OUTPUT} -P ${script}
    DEPENDS ${ARG_FILES} ${script}
    VERBATIM)
endfunction()

# What most files include from other projects.
set(TPUSIM_COMMON_HEADERS
  <algorithm> <array> <charconv> <cmath> <cstdint> <functional> <limits> <map> <memory> <numeric>
  <optional> <set> <span> <string> <string_view> <tuple> <unordered_map> <unordered_set> <utility>
  <variant> <vector>
  <absl/container/inlined_vector.h> <absl/status/status.h> <absl/status/statusor.h>
  <fmt/format.h> <fmt/ranges.h>)

# tpusim_generated(NAME): code that tools generate holds nothing of ours to check; with the sanitizers' checks it takes as long to
# compile as a whole library of ours.
function(tpusim_generated name)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    target_compile_options(${name} PRIVATE -fno-sanitize=all)
  endif()
endfunction()

# tpusim_library(NAME SOURCES a.cc b.cc DEPS x y [PRECOMPILE <headers>]): one folder of the tree.
# Headers that tpusim_hlo or tpusim_configs precompile are parsed once for all libraries that depend
# on them. They only save time: presets without them check that every file includes what it uses.
function(tpusim_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRECOMPILE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC tpusim_options ${ARG_DEPS})
  if(ARG_PRECOMPILE)
    target_precompile_headers(${name} PRIVATE ${ARG_PRECOMPILE})
  elseif(tpusim_hlo IN_LIST ARG_DEPS)
    target_precompile_headers(${name} REUSE_FROM tpusim_hlo)
  elseif(tpusim_configs IN_LIST ARG_DEPS)
    target_precompile_headers(${name} REUSE_FROM tpusim_configs)
  endif()
endfunction()

# tpusim_precompiled(NAME): for targets that are no tpusim_library and link tpusim_hlo.
function(tpusim_precompiled name)
  target_precompile_headers(${name} REUSE_FROM tpusim_hlo)
endfunction()

# tpusim_test(NAME SOURCES a_test.cc DEPS x y [PROCESS_PER_CASE] [LABELS long]): one process runs all
# test cases and prints those that fail. With PROCESS_PER_CASE each runs in a process of its own:
# where cases elaborate SystemC without a child process, as it can do so once per process, and where
# they take minutes, so that all cores have some.
# The code of the tests itself is run once: optimising it costs more than it saves.
# GCC 12 sees overflows in string concatenation that are not there.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(TPUSIM_TEST_OPTIONS -O0)  # half of the time with the checks of sanitizers
endif()
list(APPEND TPUSIM_TEST_OPTIONS $<$<CONFIG:Release>:-O1>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow>)
function(tpusim_test name)
  cmake_parse_arguments(ARG "PROCESS_PER_CASE" "" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${TPUSIM_TEST_OPTIONS})
  target_precompile_headers(${name} REUSE_FROM tpusim_test_headers)
  target_compile_definitions(${name} PRIVATE TPUSIM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  # Larger parts than of libraries: most of the time goes to templates that all tests share.
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests UNITY_BUILD_BATCH_SIZE 12)
  if(ARG_PROCESS_PER_CASE)
    gtest_discover_tests(${name} PROPERTIES LABELS "${ARG_LABELS}" DISCOVERY_TIMEOUT 60)
  else()
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
  endif()
endfunction()
