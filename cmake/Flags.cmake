# Compile and link options shared by all our targets.
add_library(penstock_flags INTERFACE)
# Contraction is off so that a fused multiply-add happens only where the code
# says so: bit-equal results across ISA paths depend on it.
target_compile_options(
  penstock_flags INTERFACE -Wall -Wextra -Wno-unused-parameter
                           -ffp-contract=off -fno-math-errno)
if(PENSTOCK_WERROR)
  target_compile_options(penstock_flags INTERFACE -Werror)
endif()
if(PENSTOCK_SANITIZE)
  target_compile_options(
    penstock_flags INTERFACE -fsanitize=${PENSTOCK_SANITIZE}
                             -fno-omit-frame-pointer
                             -fno-sanitize-recover=all -O1 -g1)
  target_link_options(penstock_flags INTERFACE
                      -fsanitize=${PENSTOCK_SANITIZE})
endif()
if(PENSTOCK_COVERAGE)
  target_compile_options(penstock_flags INTERFACE --coverage)
  target_link_options(penstock_flags INTERFACE --coverage)
endif()

find_program(PENSTOCK_CCACHE ccache)
if(PENSTOCK_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${PENSTOCK_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PENSTOCK_CCACHE})
endif()
find_program(PENSTOCK_LLD ld.lld)
if(PENSTOCK_LLD)
  target_link_options(penstock_flags INTERFACE -fuse-ld=lld)
endif()
