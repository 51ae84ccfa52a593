# rnic_nd2_program(NAME SOURCE...): a program that is written to the published interfaces of NetworkDirect, in both forms that it runs in: bin/NAME, a process
# of its own (rnic exec), and bin/NAME.so, which the tool loads into the process of the simulation (rnic lockstep). Add libraries to NAME_objects.
function(rnic_nd2_program name)
  add_library(${name}_objects OBJECT ${ARGN})
  set_target_properties(${name}_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${name}_objects PUBLIC rnic_nd2_headers)
  # A program that is loaded twice has its variables twice.
  target_compile_options(${name}_objects PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
  add_executable(${name})
  target_link_libraries(${name} PRIVATE ${name}_objects rnic_nd2_programs)
  add_library(${name}_lockstep MODULE)
  target_link_libraries(${name}_lockstep PRIVATE ${name}_objects)
  # The end of the program is not that of the process in which it runs.
  target_link_options(${name}_lockstep PRIVATE -Wl,--wrap=exit,--wrap=_exit,--wrap=_Exit,--wrap=quick_exit)
  set_target_properties(${name}_lockstep PROPERTIES PREFIX "" SUFFIX ".so" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endfunction()
