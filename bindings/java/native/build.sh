#!/bin/sh
# Puts libbyway_jni.so where the jar wants it: native/build.sh FOLDER [FILE]. Without FILE cargo builds it,
# with PROFILE and FEATURES as in the Makefile.
set -eu
folder=$1 file=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
case $(ldd --version 2>&1 || true) in *musl*) libc=-musl ;; *) libc= ;; esac
to=$folder/META-INF/native/linux-$(uname -m)$libc
if [ -z "$file" ]; then
    profile=${PROFILE:-release}
    set --
    if [ "${FEATURES-script}" != script ]; then set -- --no-default-features --features "$FEATURES"; fi
    (cd "$here" && ${CARGO:-cargo} build --quiet --profile "$profile" "$@")
    case $profile in dev) profile=debug ;; esac
    file=${CARGO_TARGET_DIR:-$here/../../../target}/$profile/libbyway_jni.so
fi
mkdir -p "$to"
# Only what changed: a library that a running JVM has mapped must not be written over.
${STRIP:-strip} --strip-debug -o "$to/fresh" "$file"
if cmp -s "$to/fresh" "$to/libbyway_jni.so"; then rm "$to/fresh"; else mv "$to/fresh" "$to/libbyway_jni.so"; fi
