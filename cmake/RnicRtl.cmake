# Verilated models of the NIC and of its blocks.
find_package(verilator 5.006 REQUIRED HINTS $ENV{VERILATOR_ROOT} /usr/share/verilator)

set(RNIC_MODEL_OPT -O2 CACHE STRING "Optimization of the Verilated code that runs every cycle")
# The sanitizers look at what people wrote. In the generated code they find nothing, and make it thirty times slower.
set(RNIC_MODEL_FLAGS)
if(RNIC_SANITIZE)
  set(RNIC_MODEL_FLAGS -fno-sanitize=all)
endif()
set(RNIC_RTL_DIRS top common pcie host xlate sq rsp tx rx srq completion)
# Large functions cost the compiler more than they bring: split, the NIC compiles in a quarter of the time.
set(RNIC_VERILATOR_ARGS --assert -Wall --unroll-count 256 --unroll-stmts 100000 --output-split-cfuncs 1000 -I${PROJECT_SOURCE_DIR}/rtl/include)
foreach(dir ${RNIC_RTL_DIRS})
  list(APPEND RNIC_VERILATOR_ARGS -y ${PROJECT_SOURCE_DIR}/rtl/${dir})
endforeach()
set(RNIC_RTL_PACKAGE ${PROJECT_SOURCE_DIR}/rtl/rnic.vlt ${PROJECT_SOURCE_DIR}/rtl/generated/rnic_pkg.sv)

# scripts/mutate.py builds the NIC from changed copies: their folder, and what they need besides.
set(RNIC_RTL_COPY "" CACHE PATH "Sources of the RTL instead of rtl/")
set(RNIC_RTL_COPY_SOURCES "" CACHE STRING "SystemVerilog and C++ files that go with them")

set(RNIC_MODELS "" CACHE STRING "Regular expression of the targets to Verilate, all when empty: the others can't be built, and an edit is soon tested")

# Forgets what was Verilated from a file that is no longer there: the list of sources of an earlier build would ask for it for ever.
function(rnic_forget_stale folder prefix)
  if(NOT EXISTS ${folder}/${prefix}_copy.cmake)
    return()
  endif()
  include(${folder}/${prefix}_copy.cmake)
  foreach(source ${${prefix}_DEPS})
    get_filename_component(path ${source} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
    if(NOT EXISTS ${path})
      message(STATUS "${path} is gone: Verilating ${prefix} again")
      file(REMOVE ${folder}/${prefix}_copy.cmake)
      return()
    endif()
  endforeach()
endfunction()

# rnic_verilate(TARGET FILE [MODULE] [ARGS...]): Verilates the module of FILE into TARGET as class V<module>.
function(rnic_verilate target file)
  if(NOT target MATCHES "${RNIC_MODELS}")
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  get_filename_component(module ${file} NAME_WE)
  set(sources ${RNIC_RTL_PACKAGE} ${file})
  set(arguments ${RNIC_VERILATOR_ARGS})
  if(RNIC_RTL_COPY)
    set(rtl ${PROJECT_SOURCE_DIR}/rtl)
    list(TRANSFORM sources REPLACE "^${rtl}/(.*[.]sv)$" "${RNIC_RTL_COPY}/\\1")
    list(TRANSFORM arguments REPLACE "${rtl}/" "${RNIC_RTL_COPY}/")
    list(PREPEND sources ${RNIC_RTL_COPY_SOURCES})
    list(FILTER sources INCLUDE REGEX "[.](sv|vlt)$")
    set(copy_cpp ${RNIC_RTL_COPY_SOURCES})
    list(FILTER copy_cpp INCLUDE REGEX "[.]cpp$")
    target_sources(${target} PRIVATE ${copy_cpp})
    list(APPEND arguments -Wno-lint -Wno-fatal)
  else()
    # Generated code names its sources. Verilator runs in this folder; with names relative to it two checkouts generate
    # the same, and share the compiler's cache.
    file(RELATIVE_PATH root ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR})
    list(APPEND arguments ${ARGN})
    list(TRANSFORM sources REPLACE "^${PROJECT_SOURCE_DIR}/" "${root}")
    list(TRANSFORM arguments REPLACE "${PROJECT_SOURCE_DIR}/" "${root}")
    set(ARGN)
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}_${module})
  rnic_forget_stale(${folder} V${module})
  verilate(${target} SOURCES ${sources} TOP_MODULE ${module} PREFIX V${module}
           DIRECTORY ${folder} VERILATOR_ARGS ${arguments} ${ARGN}
           OPT_FAST ${RNIC_MODEL_OPT} ${RNIC_MODEL_FLAGS} OPT_SLOW -O0 ${RNIC_MODEL_FLAGS} OPT_GLOBAL -O1)
  target_compile_options(${target} PRIVATE -Wno-unused-parameter -Wno-unused-but-set-variable)
  get_target_property(verilated ${target} SOURCES)
  list(FILTER verilated INCLUDE REGEX "/(V${module}|verilated)[^/]*[.]cpp$")
  set_source_files_properties(${verilated} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  # What writes waves is a third of the compiler's work and runs only when somebody asks for waves. The last option counts.
  # (-O0 would save little more, and waves take four times as long; what runs once has it already.)
  set(wave_writers ${verilated})
  list(FILTER wave_writers INCLUDE REGEX "__Trace__[0-9]+[.]cpp$")
  foreach(source ${wave_writers})
    set_property(SOURCE ${source} APPEND_STRING PROPERTY COMPILE_FLAGS " -O1")
  endforeach()
endfunction()

# rnic_rtl_test(MODULE FILE): the unit test tests/rtl/test_<module>.cpp of one block.
function(rnic_rtl_test file)
  get_filename_component(module ${file} NAME_WE)
  add_executable(test_${module} ${PROJECT_SOURCE_DIR}/tests/rtl/test_${module}.cpp)
  target_link_libraries(test_${module} PRIVATE rnic_options catch_main)
  rnic_verilate(test_${module} ${file} ${ARGN})
  add_test(NAME rtl/${module} COMMAND test_${module})
  rnic_label(rtl/${module} rtl 300)
endfunction()
