# Third-party libraries. scripts/install_dependencies.sh installs the packages; THIRD_PARTY.md lists versions and licences.

find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(hwy REQUIRED)
find_library(UTF8PROC_STATIC NAMES libutf8proc.a REQUIRED)
find_library(XXHASH_STATIC NAMES libxxhash.a REQUIRED)
if(THALWEG_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
  include(GoogleTest)
endif()
