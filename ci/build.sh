# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced by the other scripts: configure once, then build what changed in build/, with warnings as errors.
if [ ! -e build/build.ninja ]; then
	meson setup build -Dwerror=true </dev/null
fi
ninja -C build -j "$(nproc)" </dev/null
