# Two kinds of libraries, so that the one-way data flow is visible in the build:
#   gptc_library(NAME SRC... [LINK lib...])       knows no LLVM and no MLIR
#   gptc_mlir_library(NAME SRC... [LINK lib...])  compiler rooms; shares one precompiled header
function(gptc_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} fmt::fmt)
endfunction()

function(gptc_mlir_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  gptc_use_mlir(${name})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} fmt::fmt)
endfunction()

# The precompiled header is built once (target gptc-pch) and reused: an
# MLIR-heavy file takes several seconds without it.
function(gptc_use_mlir target)
  target_include_directories(${target} SYSTEM PUBLIC ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  target_compile_definitions(${target} PUBLIC ${LLVM_DEFINITIONS})
  target_link_libraries(${target} PUBLIC MLIR LLVM)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_compile_options(${target} PRIVATE -fPIC) # as the precompiled header
  endif()
  if(NOT target STREQUAL "gptc-pch")
    target_precompile_headers(${target} REUSE_FROM gptc-pch)
    add_dependencies(${target} GptcDialectIncGen)
  endif()
endfunction()

file(WRITE ${CMAKE_BINARY_DIR}/pch.cpp "")
add_library(gptc-pch STATIC ${CMAKE_BINARY_DIR}/pch.cpp)
target_precompile_headers(gptc-pch PRIVATE ${PROJECT_SOURCE_DIR}/cmake/pch.h)
target_compile_options(gptc-pch PRIVATE -Xclang -fno-pch-timestamp)
gptc_use_mlir(gptc-pch)
target_link_libraries(gptc-pch PUBLIC fmt::fmt)
