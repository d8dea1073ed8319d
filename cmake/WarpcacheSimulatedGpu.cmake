# SPDX-License-Identifier: Apache-2.0
# A GPU simulated on the host: tests/simulated_gpu.

# wc_simulated_kernels(NAME SOURCES file.cu...)
# Kernels for the simulated GPU, and that GPU's runtime, as one shared library: its inline functions are the device's
# and must not meet those of the host's code.
function(wc_simulated_kernels NAME)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES")
  set(simt "${CMAKE_SOURCE_DIR}/tests/simulated_gpu")
  set_source_files_properties(${ARG_SOURCES} PROPERTIES LANGUAGE CXX
    COMPILE_OPTIONS "-xc++;-include;${simt}/device.h;-fno-extern-tls-init;-Wno-unknown-pragmas;-Wno-sign-conversion;-Wno-unused-parameter")
  # What runs at each access of a kernel's thread: a tenth of the time of all tests on the simulated GPU.
  set_source_files_properties("${simt}/block.cc" PROPERTIES COMPILE_OPTIONS "-O2;-ftls-model=initial-exec")
  add_library(${NAME} SHARED ${ARG_SOURCES} "${simt}/allocation.cc" "${simt}/block.cc" "${simt}/runtime.cc" "${simt}/shared_memory.cc")
  target_include_directories(${NAME} PUBLIC "${simt}/include" PRIVATE "${CMAKE_SOURCE_DIR}/src" "${CMAKE_SOURCE_DIR}/include"
    "${CMAKE_SOURCE_DIR}/tests" "${CMAKE_SOURCE_DIR}/bench")
  target_link_libraries(${NAME} PRIVATE wc_warnings Boost::context Threads::Threads)
  target_link_options(${NAME} PRIVATE "-Wl,--version-script=${simt}/kernels.map")
  set_target_properties(${NAME} PROPERTIES POSITION_INDEPENDENT_CODE ON LINK_DEPENDS "${simt}/kernels.map")
endfunction()
