# rnic_nd2_program(NAME SOURCE...): a program that is written to the published interfaces of NetworkDirect, in both forms that it runs in: bin/NAME, a process
# of its own (rnic exec), and bin/NAME.so, which the tool loads into the process of the simulation (rnic lockstep). Add libraries to NAME_objects.
function(rnic_nd2_program name)
  add_library(${name}_objects OBJECT ${ARGN})
  set_target_properties(${name}_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${name}_objects PUBLIC rnic_nd2_headers)
  target_compile_options(${name}_objects PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
  add_executable(${name})
  target_link_libraries(${name} PRIVATE ${name}_objects rnic_nd2_programs)
  add_library(${name}_lockstep MODULE)
  target_link_libraries(${name}_lockstep PRIVATE ${name}_objects)
  rnic_lockstep_form(${name}_lockstep ${name})
endfunction()

# rnic_ndk_consumer(NAME SOURCE...): a consumer of the kernel provider interface, with NdkConsumerMain: bin/NAME.so, for rnic lockstep alone.
function(rnic_ndk_consumer name)
  add_library(${name} MODULE ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/driver/ndk ${PROJECT_SOURCE_DIR}/driver/ndk/names)
  target_link_libraries(${name} PRIVATE rnic_nd2_headers)
  rnic_lockstep_form(${name} ${name})
endfunction()

# What a module has that the tool loads: variables of its own each time, and an end that is not that of the process in which it runs.
function(rnic_lockstep_form target name)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
  target_link_options(${target} PRIVATE -Wl,--wrap=exit,--wrap=_exit,--wrap=_Exit,--wrap=quick_exit)
  set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX ".so" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endfunction()
