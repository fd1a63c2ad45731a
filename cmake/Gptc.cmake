# Two kinds of libraries, so that the one-way data flow is visible in the build:
#   gptc_library(NAME SRC... [LINK lib...])       knows no LLVM and no MLIR
#   gptc_mlir_library(NAME SRC... [LINK lib...])  compiler rooms; shares one precompiled header
function(gptc_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} fmt::fmt)
  gptc_use_headers(${name} gptc-std-pch)
endfunction()

function(gptc_mlir_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  gptc_use_mlir(${name})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} fmt::fmt)
endfunction()

# Precompiled headers are built once and reused: an MLIR-heavy file takes several
# seconds without, one that reads JSON or has tests two.
function(gptc_precompile name header)
  file(WRITE ${CMAKE_BINARY_DIR}/pch.cpp "")
  add_library(${name} STATIC ${CMAKE_BINARY_DIR}/pch.cpp)
  target_precompile_headers(${name} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/${header})
  target_compile_options(${name} PRIVATE -Xclang -fno-pch-timestamp)
  target_link_libraries(${name} PUBLIC fmt::fmt)
endfunction()

# The target's files begin with the headers of `pch`: gptc-std-pch, gptc-test-pch.
function(gptc_use_headers target pch)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_compile_options(${target} PRIVATE -fPIC) # as the precompiled header
  endif()
  target_precompile_headers(${target} REUSE_FROM ${pch})
endfunction()

function(gptc_use_mlir target)
  target_include_directories(${target} SYSTEM PUBLIC ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  target_compile_definitions(${target} PUBLIC ${LLVM_DEFINITIONS})
  target_link_libraries(${target} PUBLIC MLIR LLVM)
  add_dependencies(${target} GptcDialectIncGen)
  if(NOT target STREQUAL "gptc-pch")
    gptc_use_headers(${target} gptc-pch)
  endif()
endfunction()

gptc_precompile(gptc-std-pch std.h)
gptc_precompile(gptc-test-pch test.h)
find_package(GTest REQUIRED)
target_link_libraries(gptc-test-pch PUBLIC GTest::gtest)
gptc_precompile(gptc-pch mlir.h)
gptc_use_mlir(gptc-pch)
