# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced by the other scripts: configure once, then build what changed, with warnings as errors.
build() { # FOLDER OPTION-OF-MESON-SETUP...
	local dir=$1
	shift
	if [ ! -e "$dir/build.ninja" ]; then
		meson setup "$dir" -Dwerror=true "$@" </dev/null
	fi
	ninja -C "$dir" -j "$(nproc)" </dev/null
}
build build
