# SPDX-License-Identifier: Apache-2.0
# Language, build type, warnings and instrumentation, for every target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

set(WARPCACHE_SANITIZE "" CACHE STRING "Sanitizers: address,undefined or thread; empty for none")
option(WARPCACHE_WERROR "Treat warnings as errors" OFF)
option(WARPCACHE_DEBUGTIME "Test build with the debugtime command" OFF)
option(WARPCACHE_FUZZ "Build the fuzz targets, and everything for them; needs clang" OFF)
option(WARPCACHE_STUDIES "Build sim, and of bench what no system test runs" ON)

# ccache, where it is installed. Paths below the checkout are relative to it, so that another checkout of the same sources hits, too.
# A given launcher (CMAKE_<LANG>_COMPILER_LAUNCHER, as a variable or from the environment) is not changed.
find_program(WARPCACHE_CCACHE ccache)
mark_as_advanced(WARPCACHE_CCACHE)
if(WARPCACHE_CCACHE)
  foreach(language C CXX CUDA)
    if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER
        env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros "${WARPCACHE_CCACHE}")
    endif()
  endforeach()
  message(STATUS "ccache: ${WARPCACHE_CCACHE}")
else()
  message(STATUS "ccache: not found, everything is compiled anew")
endif()

# Linked privately by the project's targets, so that the warnings do not apply to other code.
add_library(wc_warnings INTERFACE)
set(wc_host_warnings -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow)
target_compile_options(wc_warnings INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:${wc_host_warnings}>")
if(WARPCACHE_WERROR)
  target_compile_options(wc_warnings INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:-Werror>")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Versions 12 and 13 give these without cause for std::string's own functions, where headers are precompiled.
    target_compile_options(wc_warnings INTERFACE
      "$<$<COMPILE_LANGUAGE:C,CXX>:-Wno-error=array-bounds;-Wno-error=restrict;-Wno-error=stringop-overflow;-Wno-error=stringop-overread>")
  endif()
endif()

if(WARPCACHE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "WARPCACHE_FUZZ: the fuzz targets need clang")
  endif()
  # Coverage counters, which only a fuzz target reads; other programs run with them too.
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

if(WARPCACHE_SANITIZE)
  add_compile_options("-fsanitize=${WARPCACHE_SANITIZE}" -fno-omit-frame-pointer)
  add_link_options("-fsanitize=${WARPCACHE_SANITIZE}")
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND WARPCACHE_SANITIZE MATCHES "address")
    # The macro of gcc for an enabled sanitizer; clang has another one.
    add_compile_definitions(__SANITIZE_ADDRESS__=1)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND WARPCACHE_SANITIZE MATCHES "undefined")
    # clang's check of types asks a pipe whether memory can be read, and without descriptors, which tests bring
    # about, calls all of it wrong.
    add_compile_options(-fno-sanitize=vptr)
  endif()
  if(WARPCACHE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()
