# gptc_planted(NAME SOURCE FROM TO [HELPER]): programs with a planted bug.
#
# A copy of lib/SOURCE in which FROM (a regular expression) is TO is compiled
# and linked before the library that holds the right one: the product's sources
# know nothing of it. HELPER is text for the beginning of the file's namespace.
# A FROM that no longer stands in the source is an error here, so that a test
# cannot pass because its bug is gone.
function(gptc_planted name source from to helper)
  set(original ${PROJECT_SOURCE_DIR}/lib/${source})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${original})
  file(READ ${original} text)
  string(REGEX REPLACE "${from}" "${to}" planted "${text}")
  if(planted STREQUAL text)
    message(FATAL_ERROR "test/Unit/Fusion: expected '${from}' in lib/${source}, where the bug '${name}' is planted; plant it where that code went")
  endif()
  string(REPLACE "\nnamespace gptc {\n" "\nnamespace gptc {\n${helper}\n" planted "${planted}")
  get_filename_component(room ${source} DIRECTORY)
  get_filename_component(file ${source} NAME)
  set(copy ${CMAKE_CURRENT_BINARY_DIR}/planted/${name}/${file})
  file(CONFIGURE OUTPUT ${copy} CONTENT "${planted}" @ONLY)

  add_library(GptcPlanted-${name} OBJECT ${copy})
  gptc_use_mlir(GptcPlanted-${name})
  target_include_directories(GptcPlanted-${name} PRIVATE ${PROJECT_SOURCE_DIR}/lib/${room})
  add_dependencies(GptcPlanted-${name} GptcSteppingPassIncGen GptcFusionPassIncGen)

  add_executable(gptc-fuzz-fusion-${name} $<TARGET_OBJECTS:GptcFuzzFusion> $<TARGET_OBJECTS:GptcPlanted-${name}>)
  gptc_use_mlir(gptc-fuzz-fusion-${name})
  target_link_libraries(gptc-fuzz-fusion-${name} PRIVATE GptcVerify GptcFusion GptcStepping GptcReference)
  # gptc itself with the bug: --verify-fusions must find it.
  add_executable(gptc-planted-${name} ${PROJECT_SOURCE_DIR}/tools/gptc.cpp $<TARGET_OBJECTS:GptcPlanted-${name}>)
  gptc_use_mlir(gptc-planted-${name})
  target_link_libraries(gptc-planted-${name} PRIVATE GptcDriver)

  add_test(NAME fuzz-fusion-planted-${name} COMMAND gptc-fuzz-fusion-${name} --caught --count 1000)
  set_tests_properties(fuzz-fusion-planted-${name} PROPERTIES TIMEOUT 300)
endfunction()
