# `cmake --build --preset deb --target package` makes a Debian package of the library, its headers and its modules.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME libtally-dev)
set(CPACK_PACKAGE_VENDOR tally)
set(CPACK_PACKAGE_CONTACT "the authors of tally <tally@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX "${CMAKE_INSTALL_PREFIX}")  # the library looks for its modules there
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
if(TALLY_ARCH STREQUAL "native")
    set(compiled_for "Compiled for the processor on which it was built.")
elseif(TALLY_ARCH)
    set(compiled_for "Compiled for ${TALLY_ARCH}; other processors cannot run it.")
else()
    set(compiled_for "Compiled for any processor of its kind.")
endif()
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "The static library, its headers, a CMake package and a pkg-config file, and the modules of its devices.
${compiled_for}")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libopenblas-dev, zlib1g-dev")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libxtensor-dev")  # for tally/xtensor.hpp
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # the modules' libraries
include(CPack)
