#!/bin/sh
# usage: install_test.sh cmake|pkg-config|deb|fetched BUILD_FOLDER     with CXX, CXXFLAGS and CMAKE in the environment
# Builds and runs the outside project with tally installed in a temporary prefix that was moved, with the files of
# tally's Debian package, or with tally as a subproject.
set -eu
way=$1
build=$2
outside=$(CDPATH='' cd -- "$(dirname -- "$0")/outside" && pwd)

if [ "$way" = pkg-config ] && ! command -v pkg-config >/dev/null; then
    echo 'skipped: no pkg-config'
    exit 77
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if [ "$way" = fetched ]; then # FetchContent as a user writes it; -O0 is enough to test that it builds
    tally=$(CDPATH='' cd -- "$outside/../../.." && pwd)
    mkdir "$scratch/all of it"
    cp "$outside/main.cpp" "$scratch/all of it"
    cat >"$scratch/all of it/CMakeLists.txt" <<PROJECT
cmake_minimum_required(VERSION 3.22)
project(all_of_it LANGUAGES CXX)
include(FetchContent)
FetchContent_Declare(tally GIT_REPOSITORY nowhere)
FetchContent_MakeAvailable(tally)
add_executable(outside main.cpp)
target_link_libraries(outside PRIVATE tally::tally)
PROJECT
    "$CMAKE" -S "$scratch/all of it" -B "$scratch/the build" "-DFETCHCONTENT_SOURCE_DIR_TALLY=$tally" -DTALLY_CUDA=OFF \
        -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0
    "$CMAKE" --build "$scratch/the build" --parallel 2 --target outside
    "$scratch/the build/outside"
    exit
fi

if [ "$way" = deb ]; then
    command -v dpkg-shlibdeps >/dev/null || { echo 'skipped: no dpkg-dev' && exit 77; }
    (cd "$build" && "$(dirname "$CMAKE")/cpack" -G DEB -B "$scratch/package")
    package=$(find "$scratch/package" -maxdepth 1 -name 'libtally-dev_*.deb')
    for needed in libc6 libopenblas-dev zlib1g-dev; do
        dpkg-deb -f "$package" Depends | grep -qw "$needed" || { dpkg-deb -f "$package" >&2 && exit 1; }
    done
    dpkg-deb -x "$package" "$scratch/the files"
    "$CMAKE" -S "$outside" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$(dirname "$(find "$scratch/the files" -name include)")"
    "$CMAKE" --build "$scratch/build"
    "$scratch/build/outside"
    "$scratch/build/expressions"
    exit
fi

"$CMAKE" --install "$build" --prefix "$scratch/elsewhere" >"$scratch/install.log"
prefix="$scratch/the prefix" # an installed tree may be moved, and its path may contain blanks
mv "$scratch/elsewhere" "$prefix"

if [ "$way" = cmake ]; then
    "$CMAKE" -S "$outside" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$prefix" -DWITH_PROCESSES=ON
    "$CMAKE" --build "$scratch/build"
    "$scratch/build/outside"
    "$scratch/build/expressions"
    "$scratch/build/together"
    exit
fi

export PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
[ -d "$PKG_CONFIG_PATH" ] || PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name tally.pc)")
# shellcheck disable=SC2086  # flags are words
eval "$CXX" -std=c++20 ${CXXFLAGS:-} "'$outside/main.cpp'" -o "'$scratch/outside'" "$(pkg-config --cflags --libs tally)"
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH") # a shared library is not in a system folder
export LD_LIBRARY_PATH
"$scratch/outside"

# A program finds the modules installed with its library before those of the build.
mkdir -p "$prefix/bin"
cat >"$scratch/simulated.cpp" <<'PROGRAM'
#include <tally/tally.hpp>
int main() { return tally::Array<float>{1, 2, 3}.to(tally::Device::cuda).to(tally::Device::cpu).size() == 3 ? 0 : 1; }
PROGRAM
# shellcheck disable=SC2086
eval "$CXX" -std=c++20 ${CXXFLAGS:-} "'$scratch/simulated.cpp'" -o "'$prefix/bin/simulated'" "$(pkg-config --cflags --libs tally)"
TALLY_GPU_MODULE=simulated LD_DEBUG=files "$prefix/bin/simulated" 2>"$scratch/loaded"
grep -q 'the prefix/.*/tally_simulated.so' "$scratch/loaded" || { echo 'the installed module was not loaded' >&2; exit 1; }

# Installed headers include neither xtensor nor BLAS, except tally/xtensor.hpp, which includes xtensor. Only public headers
# can be included directly.
if grep -rnE '# *include *[<"](xtensor|xtensor-blas|xtl|xsimd|cblas|lapacke|f77blas)' "$prefix/include" |
    grep -vE '/tally/xtensor[.]hpp:[0-9]+:#include <xtensor/'; then
    echo 'a public header includes xtensor or BLAS' >&2
    exit 1
fi
(cd "$prefix/include" && find . -name '*.hpp' | sed 's|^[.]/||') >"$scratch/headers"
[ "$(wc -l <"$scratch/headers")" -gt 50 ]
while IFS= read -r header; do
    output=$(echo "#include <$header>" | eval "$CXX" -std=c++20 -E -x c++ - "$(pkg-config --cflags tally)" 2>&1 >"$scratch/read") && rejected=no || rejected=yes
    case $header:$rejected:$output in
        tally/core.hpp:no:* | tally/distributed.hpp:no:* | tally/tally.hpp:no:* | tally/train.hpp:no:* | tally/xtensor.hpp:no:*) ;;
        tally/core.hpp:* | tally/distributed.hpp:* | tally/tally.hpp:* | tally/train.hpp:* | tally/xtensor.hpp:*) echo "cannot be included: $header" >&2 && exit 1 ;;
        *:yes:*"$header is internal: include <tally/tally.hpp>"*) ;;
        *) echo "internal header can be included, or its error is wrong: $header: $output" >&2 && exit 1 ;;
    esac
done <"$scratch/headers"
printf '#include <tally/%s.hpp>\n' xtensor core tally train distributed >"$scratch/both.cpp"
eval "$CXX" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror "'$scratch/both.cpp'" "$(pkg-config --cflags tally)"

# Without xtensor on the include path, tally/xtensor.hpp says that it is missing.
sed -i 's|<xtensor/|<absent/|' "$prefix/include/tally/xtensor.hpp"
if output=$(eval "$CXX" -std=c++20 -fsyntax-only "'$scratch/both.cpp'" "$(pkg-config --cflags tally)" 2>&1) ||
    ! echo "$output" | grep -q 'requires xtensor on the include path: find_package(xtensor)'; then
    echo "the error does not say that xtensor is missing: $output" >&2
    exit 1
fi
