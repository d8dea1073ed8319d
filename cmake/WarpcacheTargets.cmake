# SPDX-License-Identifier: Apache-2.0
# The helpers that every part's CMakeLists.txt uses.

# wc_precompiled(NAME HEADERS header... [LIBS target...])
# Headers that are compiled once, for those targets that use them. Not by clang, whose result names the checkout, so that ccache
# would miss in every other one.
function(wc_precompiled NAME)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "HEADERS;LIBS")
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/${NAME}.cc" CONTENT "// Holds precompiled headers.\n")
  add_library(${NAME} STATIC "${CMAKE_BINARY_DIR}/${NAME}.cc")
  target_compile_options(${NAME} PRIVATE -fpch-preprocess)  # ccache asks for it
  target_link_libraries(${NAME} PRIVATE wc_warnings ${ARG_LIBS})
  target_precompile_headers(${NAME} PRIVATE ${ARG_HEADERS})
  set_target_properties(${NAME} PROPERTIES UNITY_BUILD OFF)
endfunction()

# wc_use_precompiled(NAME FROM): the target NAME uses the headers of wc_precompiled(FROM), where there are any.
function(wc_use_precompiled NAME FROM)
  if(TARGET ${FROM})
    target_precompile_headers(${NAME} REUSE_FROM ${FROM})
    target_compile_options(${NAME} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endfunction()

# What most units include, and GoogleTest's headers, which take up to half of the time of a test's unit.
set(common_headers <algorithm> <array> <atomic> <chrono> <functional> <map> <memory> <mutex> <optional> <sstream> <string>
  <string_view> <thread> <unordered_map> <vector>)
wc_precompiled(wc_common_headers HEADERS ${common_headers} LIBS Threads::Threads)
if(BUILD_TESTING AND GTest_FOUND)
  wc_precompiled(wc_test_headers HEADERS <gmock/gmock.h> <gtest/gtest.h> <random> ${common_headers} LIBS GTest::gmock Threads::Threads)
endif()

# wc_kernels_alone(file...): kernels are compiled one by one; from CMake 3.31 on a unity build would join them, too.
function(wc_kernels_alone)
  list(FILTER ARGV INCLUDE REGEX "\\.cu$")
  if(ARGV)
    set_source_files_properties(${ARGV} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# wc_library(NAME [SOURCES file...] [LIBS target...])
# A static library, or an INTERFACE one if it has no sources. LIBS are public. Includes read "part/file.h".
function(wc_library NAME)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;LIBS")
  if(ARG_SOURCES)
    add_library(${NAME} STATIC ${ARG_SOURCES})
    wc_kernels_alone(${ARG_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${NAME} PRIVATE wc_warnings)
    wc_use_precompiled(${NAME} wc_common_headers)
  else()
    add_library(${NAME} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${NAME} ${scope}
    "${CMAKE_SOURCE_DIR}/src" "${CMAKE_SOURCE_DIR}/include")
  target_link_libraries(${NAME} ${scope} ${ARG_LIBS})
endfunction()

# wc_module(NAME SOURCES file... LIBS target...): what the server loads when it is asked for (io/module.h).
function(wc_module NAME)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;LIBS")
  add_library(${NAME} MODULE ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE ${ARG_LIBS})
  if(NOT WARPCACHE_SANITIZE)  # their functions are in the program
    target_link_options(${NAME} PRIVATE -Wl,-z,defs)
  endif()
  set_target_properties(${NAME} PROPERTIES PREFIX "" UNITY_BUILD OFF LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
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
  wc_kernels_alone(${ARG_SOURCES})
  target_include_directories(${NAME} PRIVATE "${CMAKE_SOURCE_DIR}/src" "${CMAKE_SOURCE_DIR}/include")
  target_link_libraries(${NAME} PRIVATE wc_warnings ${ARG_LIBS})
  wc_use_precompiled(${NAME} wc_common_headers)
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
endfunction()

# wc_test(NAME SOURCES file... [LIBS target...] [PROCESSORS count] [COST seconds])
# A GoogleTest program; each of its cases becomes one ctest test, which sees the simulated GPU where that was built. PROCESSORS:
# that a case keeps busy, which ctest counts against its -j. COST: about what its long cases take, if that is more than some seconds.
# ctest begins with those, so that none is left alone at the end; of the others with what took longest in this build folder before.
# Does nothing where GoogleTest is absent.
function(wc_test NAME)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "PROCESSORS;COST" "SOURCES;LIBS")
  if(NOT BUILD_TESTING OR NOT GTest_FOUND)
    return()
  endif()
  set(properties TIMEOUT ${WARPCACHE_TEST_TIMEOUT_S} ENVIRONMENT SIMT_GPU=1)
  foreach(property PROCESSORS COST)
    if(ARG_${property})
      list(APPEND properties ${property} ${ARG_${property}})
    endif()
  endforeach()
  add_executable(${NAME} ${ARG_SOURCES})
  wc_kernels_alone(${ARG_SOURCES})
  target_include_directories(${NAME} PRIVATE "${CMAKE_SOURCE_DIR}/src" "${CMAKE_SOURCE_DIR}/include")
  target_link_libraries(${NAME} PRIVATE wc_warnings ${ARG_LIBS} GTest::gmock GTest::gtest_main
    Threads::Threads)
  add_dependencies(wc_tests ${NAME})
  wc_use_precompiled(${NAME} wc_test_headers)
  gtest_discover_tests(${NAME} TEST_PREFIX "${NAME}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 300 PROPERTIES ${properties})
endfunction()

# All unit tests. What no test runs, ./test does not build.
add_custom_target(wc_tests)

# Time limit for a test that hangs. Every test takes less than a tenth of it, so that a busy machine does not exceed it.
set(WARPCACHE_TEST_TIMEOUT_S 1200)

if(BUILD_TESTING AND GTest_FOUND)
  include(GoogleTest)
endif()
