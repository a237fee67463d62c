# Every outside package, by its Debian 12 name, found once at the root: the
# deferred layer check does not see imports made in a subdirectory.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)                      # libabsl-dev
find_package(PkgConfig REQUIRED)                 # pkg-config
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8) # libpcre2-dev
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc) # libutf8proc-dev
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash) # libxxhash-dev
pkg_check_modules(URING REQUIRED IMPORTED_TARGET liburing) # liburing-dev
find_package(CLI11 CONFIG REQUIRED)              # libcli11-dev
find_package(nlohmann_json REQUIRED)             # nlohmann-json3-dev
if(PENSTOCK_RPC)
  # Protobuf before gRPC: gRPC's config expects its targets.
  find_package(Protobuf REQUIRED)                # libprotobuf-dev
  find_package(gRPC CONFIG REQUIRED)             # libgrpc++-dev
  find_package(prometheus-cpp CONFIG REQUIRED)   # prometheus-cpp-dev
  pkg_check_modules(READLINE REQUIRED IMPORTED_TARGET readline) # libreadline-dev
  find_package(Boost CONFIG REQUIRED)            # libboost-dev: Asio and Beast
endif()
if(BUILD_TESTING)
  find_package(GTest REQUIRED)                   # libgtest-dev, libgmock-dev
  find_package(Python3 REQUIRED COMPONENTS Interpreter) # python3
endif()
if(PENSTOCK_BENCHMARKS)
  find_package(benchmark REQUIRED)               # libbenchmark-dev
endif()
