# SPDX-License-Identifier: Apache-2.0
# The helpers that every part's CMakeLists.txt uses.

# wc_library(NAME [SOURCES file...] [LIBS target...])
# A static library, or an INTERFACE one if it has no sources. LIBS are public. Includes read "part/file.h".
function(wc_library NAME)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;LIBS")
  if(ARG_SOURCES)
    add_library(${NAME} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${NAME} PRIVATE wc_warnings)
  else()
    add_library(${NAME} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${NAME} ${scope}
    "${CMAKE_SOURCE_DIR}/src" "${CMAKE_SOURCE_DIR}/include")
  target_link_libraries(${NAME} ${scope} ${ARG_LIBS})
endfunction()

# wc_executable(NAME SOURCES file... [LIBS target...])
# A program, placed at the top of the build folder. Does nothing if a library of LIBS, such as CLI11::CLI11, was not
# found.
function(wc_executable NAME)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;LIBS")
  foreach(library IN LISTS ARG_LIBS)
    if(library MATCHES "::" AND NOT TARGET ${library})
      return()
    endif()
  endforeach()
  add_executable(${NAME} ${ARG_SOURCES})
  target_include_directories(${NAME} PRIVATE "${CMAKE_SOURCE_DIR}/src" "${CMAKE_SOURCE_DIR}/include")
  target_link_libraries(${NAME} PRIVATE wc_warnings ${ARG_LIBS})
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
endfunction()

# wc_test(NAME SOURCES file... [LIBS target...] [PROCESSORS count])
# A GoogleTest program; each of its cases becomes one ctest test, which sees the simulated GPU where that was built. PROCESSORS:
# that a case keeps busy, which ctest counts against its -j; it begins before others. Does nothing where GoogleTest is absent.
function(wc_test NAME)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "PROCESSORS" "SOURCES;LIBS")
  if(NOT BUILD_TESTING OR NOT GTest_FOUND)
    return()
  endif()
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
  endif()
  add_executable(${NAME} ${ARG_SOURCES})
  target_include_directories(${NAME} PRIVATE "${CMAKE_SOURCE_DIR}/src" "${CMAKE_SOURCE_DIR}/include")
  target_link_libraries(${NAME} PRIVATE wc_warnings ${ARG_LIBS} GTest::gmock GTest::gtest_main
    Threads::Threads)
  if(TARGET wc_test_headers)
    target_precompile_headers(${NAME} REUSE_FROM wc_test_headers)
    target_compile_options(${NAME} PRIVATE -fpch-preprocess)
  endif()
  gtest_discover_tests(${NAME} TEST_PREFIX "${NAME}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 300
    PROPERTIES TIMEOUT ${WARPCACHE_TEST_TIMEOUT_S} PROCESSORS ${ARG_PROCESSORS} COST ${ARG_PROCESSORS} ENVIRONMENT SIMT_GPU=1)
endfunction()

# Time limit for a test that hangs. Every test takes less than a tenth of it, so that a busy machine does not exceed it.
set(WARPCACHE_TEST_TIMEOUT_S 1200)

# GoogleTest's headers and what they include take up to half of the time of a test's unit: they are compiled once. Not by clang,
# whose result names the checkout, so that ccache would miss in every other one.
if(BUILD_TESTING AND GTest_FOUND AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/test_headers.cc" CONTENT "// Holds the precompiled headers of the unit tests.\n")
  add_library(wc_test_headers STATIC "${CMAKE_BINARY_DIR}/test_headers.cc")
  target_compile_options(wc_test_headers PRIVATE -fpch-preprocess)  # ccache asks for it
  target_link_libraries(wc_test_headers PRIVATE wc_warnings GTest::gmock Threads::Threads)
  target_precompile_headers(wc_test_headers PRIVATE
    <gmock/gmock.h> <gtest/gtest.h> <algorithm> <chrono> <map> <memory> <random> <string> <thread> <vector>)
endif()

if(BUILD_TESTING AND GTest_FOUND)
  include(GoogleTest)
endif()
