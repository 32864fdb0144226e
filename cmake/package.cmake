# `cmake --build --preset deb --target package` makes a Debian package of what is installed: library, headers, modules.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME libtally-dev)
set(CPACK_PACKAGE_VENDOR tally)
set(CPACK_PACKAGE_CONTACT "the authors of tally <tally@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX "${CMAKE_INSTALL_PREFIX}")  # the library knows it: there it looks for its modules
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
if(TALLY_ARCH STREQUAL "native")
    set(compiled_for "Compiled for the very processor that it was built on.")
elseif(TALLY_ARCH)
    set(compiled_for "Compiled for ${TALLY_ARCH}: a processor that does not have it cannot run it.")
else()
    set(compiled_for "Compiled for any processor of its kind.")
endif()
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "The static library, its headers, a CMake package and a pkg-config file, and the modules of its devices.
${compiled_for}")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libopenblas-dev, zlib1g-dev")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libxtensor-dev")  # of tally/xtensor.hpp
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # what the modules need
include(CPack)
