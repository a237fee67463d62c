# Layers: every library states its rank, and may link only strictly lower
# ranks. What third-party code a rank may link is listed here too, so that an
# upward edge or a stray dependency fails configure instead of review.
#
#   project_library(NAME LAYER n [SRCS ...] [DEPS ...] [ADAPTS ...])
#   project_binary(NAME SRCS ... DEPS ...)         rank 50
#   project_test(NAME SRCS ... DEPS ... [LABELS ...] [ENVIRONMENT ...]
#                [TIMEOUT s] [PROCESSORS n])      n threads that compute
#   project_mutation(NAME SRCS ... DEPS ... ARGS ... [TIMEOUT s])
#                                  a driver, and a unit test that runs it so
#   project_benchmark(NAME SRCS ... DEPS ...)
#
# ADAPTS names the one outside thing that an adapter (rank 30 and up) wraps.
#
# Who makes or guards against threads has Threads::Threads in DEPS. Only where
# a test links such code can a thread sanitizer find anything, so under it the
# other tests are neither built nor run, and other binaries not built.

# Whose data and models the tests read: a copy of the sources need not hold
# them.
set(PENSTOCK_DATA "${PROJECT_SOURCE_DIR}"
    CACHE PATH "Where tests/data and models are")

set_property(GLOBAL PROPERTY PENSTOCK_LIBRARIES "")
set_property(GLOBAL PROPERTY PENSTOCK_BINARIES "")
set_property(GLOBAL PROPERTY PENSTOCK_TESTS "")

# Third-party targets that a rank may name in DEPS or ADAPTS.
function(_penstock_allowed rank out)
  set(allowed "^absl::")
  if(rank EQUAL 12 OR rank EQUAL 13)
    string(APPEND allowed
           "|^PkgConfig::PCRE2$|^nlohmann_json::nlohmann_json$|^PkgConfig::XXHASH$|^PkgConfig::UTF8PROC$")
  elseif(rank EQUAL 20)
    string(APPEND allowed "|^PkgConfig::XXHASH$")
  elseif(rank EQUAL 28)
    string(APPEND allowed "|^protobuf::|^gRPC::")
  elseif(rank EQUAL 32)
    string(APPEND allowed "|^protobuf::|^gRPC::")
  endif()
  if(rank GREATER 27)
    string(APPEND allowed "|^Threads::Threads$")
  endif()
  set(${out} "${allowed}" PARENT_SCOPE)
endfunction()

function(project_library name)
  cmake_parse_arguments(ARG "" "LAYER" "SRCS;DEPS;ADAPTS" ${ARGN})
  if(NOT DEFINED ARG_LAYER)
    message(FATAL_ERROR "${name}: LAYER is missing")
  endif()
  if(ARG_ADAPTS AND ARG_LAYER LESS 30)
    message(FATAL_ERROR "${name}: ADAPTS is for adapters (rank 30 and up)")
  endif()
  if(ARG_SRCS)
    add_library(${name} STATIC ${ARG_SRCS})
    set(scope PUBLIC)
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${name} ${scope} ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} ${scope} ${ARG_DEPS} ${ARG_ADAPTS})
  target_link_libraries(${name} ${scope} penstock_flags)
  if(PENSTOCK_SANITIZE)
    # Built when a test needs it.
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_LIBRARIES ${name})
  set_property(GLOBAL PROPERTY PENSTOCK_RANK_${name} ${ARG_LAYER})
  set_property(GLOBAL PROPERTY PENSTOCK_DEPS_${name} "${ARG_DEPS}")
  set_property(GLOBAL PROPERTY PENSTOCK_ADAPTS_${name} "${ARG_ADAPTS}")
  set_property(GLOBAL PROPERTY PENSTOCK_DIR_${name}
                               ${CMAKE_CURRENT_SOURCE_DIR})
endfunction()

function(project_binary name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_BINARIES ${name})
  set_property(GLOBAL PROPERTY PENSTOCK_DEPS_${name} "${ARG_DEPS}")
  set_property(GLOBAL PROPERTY PENSTOCK_DIR_${name} ${CMAKE_CURRENT_SOURCE_DIR})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} penstock_flags)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                           ${CMAKE_BINARY_DIR}/bin)
endfunction()

function(project_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;PROCESSORS" "SRCS;DEPS;LABELS;ENVIRONMENT"
                        ${ARGN})
  if(NOT BUILD_TESTING)
    return()
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(NOT ARG_PROCESSORS)
    set(ARG_PROCESSORS 1)
    # Backends compute with several threads: two at once on two cores would
    # take many times as long as one after the other.
    if("contract" IN_LIST ARG_LABELS)
      set(ARG_PROCESSORS 2)
    endif()
  endif()
  if(PENSTOCK_SANITIZE)
    # Ten times slower is usual; a limit is there to end what hangs.
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 5")
  endif()
  add_executable(${name} ${ARG_SRCS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock
                                        GTest::gtest_main penstock_flags)
  # A third of their compile time; what takes long is in the libraries.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_compile_definitions(
    ${name} PRIVATE PENSTOCK_TEST_DATA="${PENSTOCK_DATA}/tests/data"
                    PENSTOCK_MODELS="${PENSTOCK_DATA}/models")
  _penstock_register_test(${name} "${ARG_DEPS}" ${name})
  foreach(property IN ITEMS LABELS TIMEOUT PROCESSORS ENVIRONMENT)
    set_property(GLOBAL PROPERTY PENSTOCK_TEST_${property}_${name}
                                 "${ARG_${property}}")
  endforeach()
endfunction()

function(project_mutation name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SRCS;DEPS;ARGS" ${ARGN})
  if(NOT BUILD_TESTING)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  project_binary(${name} SRCS ${ARG_SRCS} DEPS ${ARG_DEPS})
  target_compile_definitions(
    ${name} PRIVATE PENSTOCK_TEST_DATA="${PENSTOCK_DATA}/tests/data")
  _penstock_register_test(${name} "${ARG_DEPS}" ${name} ${ARG_ARGS})
  set_property(GLOBAL PROPERTY PENSTOCK_TEST_LABELS_${name} unit)
  set_property(GLOBAL PROPERTY PENSTOCK_TEST_TIMEOUT_${name} ${ARG_TIMEOUT})
endfunction()

# A test becomes one at the end of configure, when all that it links is known.
function(_penstock_register_test name deps)
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_TESTS ${name})
  set_property(GLOBAL PROPERTY PENSTOCK_DEPS_${name} "${deps}")
  set_property(GLOBAL PROPERTY PENSTOCK_DIR_${name} ${CMAKE_CURRENT_SOURCE_DIR})
  set_property(GLOBAL PROPERTY PENSTOCK_TEST_COMMAND_${name} "${ARGN}")
  set_property(GLOBAL PROPERTY PENSTOCK_TEST_WORKING_DIR_${name}
                               ${CMAKE_CURRENT_BINARY_DIR})
endfunction()

function(project_benchmark name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  if(NOT PENSTOCK_BENCHMARKS)
    return()
  endif()
  add_executable(${name} ${ARG_SRCS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} benchmark::benchmark
                                        penstock_flags)
endfunction()

# Runs at the end of configure, when every library is known.
function(penstock_check_layers)
  get_property(libraries GLOBAL PROPERTY PENSTOCK_LIBRARIES)
  set(errors "")
  foreach(name IN LISTS libraries)
    get_property(rank GLOBAL PROPERTY PENSTOCK_RANK_${name})
    get_property(adapts GLOBAL PROPERTY PENSTOCK_ADAPTS_${name})
    _penstock_allowed(${rank} allowed)
    # What is really linked, not only what DEPS said: a later
    # target_link_libraries cannot slip past.
    get_target_property(type ${name} TYPE)
    if(type STREQUAL "INTERFACE_LIBRARY")
      get_target_property(links ${name} INTERFACE_LINK_LIBRARIES)
    else()
      get_target_property(links ${name} LINK_LIBRARIES)
    endif()
    foreach(dep IN LISTS links)
      if(dep STREQUAL "penstock_flags" OR dep MATCHES "^::@")
        continue()
      endif()
      if(dep IN_LIST libraries)
        get_property(dep_rank GLOBAL PROPERTY PENSTOCK_RANK_${dep})
        if(NOT dep_rank LESS rank)
          string(APPEND errors
            "  ${name} (rank ${rank}) links ${dep} (rank ${dep_rank})\n")
        endif()
      elseif(rank LESS 40 AND NOT dep MATCHES "${allowed}" AND NOT dep IN_LIST
                                                               adapts)
        string(APPEND errors
          "  ${name} (rank ${rank}) links ${dep}, not allowed at its rank\n")
      endif()
    endforeach()
  endforeach()
  if(errors)
    message(FATAL_ERROR "Layer check failed:\n${errors}")
  endif()
  # For the include checks (tools/tidy): one line per library,
  # rank|name|dir|deps.
  set(table "")
  foreach(name IN LISTS libraries)
    get_property(rank GLOBAL PROPERTY PENSTOCK_RANK_${name})
    get_property(dir GLOBAL PROPERTY PENSTOCK_DIR_${name})
    get_property(deps GLOBAL PROPERTY PENSTOCK_DEPS_${name})
    get_property(adapts GLOBAL PROPERTY PENSTOCK_ADAPTS_${name})
    file(RELATIVE_PATH dir ${PROJECT_SOURCE_DIR} ${dir})
    string(REPLACE ";" "," deps "${deps};${adapts}")
    string(APPEND table "${rank}|${name}|${dir}|${deps}\n")
  endforeach()
  file(WRITE ${CMAKE_BINARY_DIR}/layers.txt "${table}")
endfunction()

# Every library of the project that `name` links, itself included.
function(_penstock_closure name out)
  get_property(libraries GLOBAL PROPERTY PENSTOCK_LIBRARIES)
  set(closure ${name})
  set(pending ${name})
  while(pending)
    list(POP_FRONT pending next)
    get_property(deps GLOBAL PROPERTY PENSTOCK_DEPS_${next})
    foreach(dep IN LISTS deps)
      if(dep IN_LIST libraries AND NOT dep IN_LIST closure)
        list(APPEND closure ${dep})
        list(APPEND pending ${dep})
      endif()
    endforeach()
  endwhile()
  set(${out} ${closure} PARENT_SCOPE)
endfunction()

# Does anything that `name` links, itself included, have to do with threads?
function(_penstock_has_threads name out)
  _penstock_closure(${name} closure)
  set(${out} FALSE PARENT_SCOPE)
  foreach(each IN LISTS closure)
    get_property(deps GLOBAL PROPERTY PENSTOCK_DEPS_${each})
    get_property(adapts GLOBAL PROPERTY PENSTOCK_ADAPTS_${each})
    foreach(dep IN LISTS deps adapts)
      if(dep MATCHES "^Threads::Threads$|^gRPC::")
        set(${out} TRUE PARENT_SCOPE)
        return()
      endif()
    endforeach()
  endforeach()
endfunction()

# What includes a header of threads must say so in DEPS, or link what does.
function(_penstock_check_threads name)
  get_target_property(type ${name} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    return()
  endif()
  get_property(dir GLOBAL PROPERTY PENSTOCK_DIR_${name})
  get_target_property(sources ${name} SOURCES)
  foreach(source IN LISTS sources)
    string(REGEX REPLACE "[.]cc$" ".h" header "${source}")
    foreach(file IN ITEMS ${source} ${header})
      if(NOT file MATCHES "[.](cc|h)$" OR NOT EXISTS "${dir}/${file}")
        continue()
      endif()
      file(STRINGS "${dir}/${file}" threads LIMIT_COUNT 1 REGEX
        "^#include <(thread|mutex|shared_mutex|condition_variable|future|semaphore|barrier|latch|stop_token|pthread[.]h)>")
      if(threads)
        _penstock_has_threads(${name} declared)
        if(NOT declared)
          message(FATAL_ERROR "${name}: ${file} has \"${threads}\"; add "
                              "Threads::Threads to its DEPS")
        endif()
        return()
      endif()
    endforeach()
  endforeach()
endfunction()

# Runs at the end of configure: what was registered becomes tests.
function(penstock_add_tests)
  get_property(libraries GLOBAL PROPERTY PENSTOCK_LIBRARIES)
  get_property(binaries GLOBAL PROPERTY PENSTOCK_BINARIES)
  get_property(tests GLOBAL PROPERTY PENSTOCK_TESTS)
  foreach(name IN LISTS libraries binaries tests)
    _penstock_check_threads(${name})
  endforeach()
  set(without "")
  if(PENSTOCK_SANITIZE STREQUAL "thread")
    foreach(name IN LISTS binaries tests)
      _penstock_has_threads(${name} threads)
      if(NOT threads)
        list(APPEND without ${name})
        set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
      endif()
    endforeach()
  endif()
  set(left_out 0)
  foreach(name IN LISTS tests)
    if(name IN_LIST without)
      math(EXPR left_out "${left_out} + 1")
      continue()
    endif()
    get_property(command GLOBAL PROPERTY PENSTOCK_TEST_COMMAND_${name})
    get_property(dir GLOBAL PROPERTY PENSTOCK_TEST_WORKING_DIR_${name})
    add_test(NAME ${name} COMMAND ${command} WORKING_DIRECTORY ${dir})
    foreach(property IN ITEMS LABELS TIMEOUT PROCESSORS ENVIRONMENT)
      get_property(value GLOBAL PROPERTY PENSTOCK_TEST_${property}_${name})
      if(value)
        set_property(TEST ${name} PROPERTY ${property} ${value})
      endif()
    endforeach()
  endforeach()
  if(left_out)
    message(STATUS "Left out ${left_out} tests that no thread runs in")
  endif()
endfunction()

# What the simulator shows of the services it shows of the same code: it links
# each library of the core (below rank 28) that decides something in a service,
# and nothing that a service puts around the core.
function(penstock_check_simulator simulator)
  set(services ${ARGN})
  _penstock_closure(${simulator} simulated)
  set(shared "")
  foreach(service IN LISTS services)
    _penstock_closure(${service} served)
    foreach(library IN LISTS served)
      get_property(rank GLOBAL PROPERTY PENSTOCK_RANK_${library})
      if(rank LESS 17 OR rank GREATER 27)
        continue()
      endif()
      if(NOT library IN_LIST simulated)
        message(FATAL_ERROR
          "${service} links ${library}, which ${simulator} does not simulate")
      endif()
      list(APPEND shared ${library})
    endforeach()
  endforeach()
  foreach(library IN LISTS simulated)
    get_property(rank GLOBAL PROPERTY PENSTOCK_RANK_${library})
    if(rank GREATER 27 AND rank LESS 40)
      message(FATAL_ERROR "${simulator} links ${library} (rank ${rank}), "
                          "which is not of the core")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES shared)
  list(JOIN shared " " shared)
  message(STATUS "Services and ${simulator} link the same core: ${shared}")
endfunction()
