#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The launcher: what it refuses and how, what the program gets, where the library is looked for.
# Usage: test_rxe_run.sh RXE_RUN LIBRARY STATIC_PROGRAM LIBDIR; speaks TAP.
set -u
rxe_run=$1 library=$2 static=$3 libdir=$4
unset RXE_NETDEV RXE_ADDR RXE_PCAP RXE_FAULT RXE_STATS RXE_GSO RXE_LANES RXE_LOG RXE_SAFE_COPY LD_PRELOAD
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
XDG_RUNTIME_DIR=$dir
export XDG_RUNTIME_DIR
n=0 failed=0

# A build tree of its own, so that nothing depends on what else has been built.
mkdir -p "$dir/tree/verbs" "$dir/inst/bin" "$dir/inst/$libdir/rxe-xrc" "$dir/alone" "$dir/a b/verbs"
for d in tree inst/bin alone "a b"; do cp "$rxe_run" "$dir/$d/rxe-run"; done
for d in tree/verbs "inst/$libdir/rxe-xrc" "a b/verbs"; do cp "$library" "$dir/$d/librxe-verbs.so"; done
run=$dir/tree/rxe-run
cat >"$dir/show" <<'SHOW'
#!/bin/sh
env | grep -E '^(RXE_|LD_PRELOAD=)'
SHOW
chmod +x "$dir/show"

ok() { # ok STATUS NAME
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; failed=1; sed 's/^/# /' "$dir/out"; fi
}

# expect STATUS TEXT NAME COMMAND...: exit status, and a text (a shell pattern) in stdout or stderr
expect() {
	want=$1 text=$2 name=$3
	shift 3
	"$@" >"$dir/out" 2>&1
	got=$?
	if [ $got -eq "$want" ]; then
		# The dot keeps the last newline.
		case $(cat "$dir/out"; echo .) in
		*$text*) ok 0 "$name"; return ;;
		esac
	fi
	echo "# exit $got, wanted $want and \"$text\"" >>"$dir/out"
	ok 1 "$name"
}

expect 0 "Examples:" "help" "$run" --help
expect 0 "rxe-run [0-9]" "version" "$run" --version
expect 2 "which program" "no program" "$run"
expect 2 "which program" "no program behind --" "$run" --netdev lo --
expect 2 "--frobnicate" "unknown option is named" "$run" --frobnicate -- true
expect 2 "netdev" "option without its value" "$run" --netdev
expect 2 '--addr, "127.0.0.300"' "bad address" "$run" --addr 127.0.0.300 -- true
expect 2 '--fault, "drop=200%"' "bad fault" "$run" --fault drop=200% -- true
expect 2 "dorp=1%" "bad fault says where" "$run" --fault dup=1%,dorp=1% -- true
expect 2 '--gso, "maybe"' "bad gso" "$run" --gso maybe -- true
expect 2 '--lanes, "3": 1, 2, 4, 8 or 16' "bad number of lanes" "$run" --lanes 3 -- true
expect 2 '--log, "loud"' "bad log level" "$run" --log loud -- true
expect 2 '--pcap, ""' "empty capture name" "$run" --pcap "" -- true
expect 2 'RXE_GSO, "x"' "bad value in the environment" env RXE_GSO=x "$run" true
expect 2 'RXE_SAFE_COPY, "x"' "bad value without an option" env RXE_SAFE_COPY=x "$run" true
expect 0 "" "an option wins over the environment" env RXE_GSO=x "$run" --gso off true
expect 2 "no interface nope0" "no such interface" "$run" --netdev nope0 -- true
expect 2 "192.0.2.199 is no address" "no such address" "$run" --addr 192.0.2.199 -- true
expect 2 "192.0.2.199 is no address of interface lo" "not this interface's" "$run" --netdev lo --addr 192.0.2.199 true
expect 127 "$dir/none" "program not found" "$run" -- "$dir/none"
expect 127 "no-such-program" "program not in PATH" "$run" -- no-such-program
: >"$dir/plain"
expect 126 "$dir/plain" "program not executable" "$run" -- "$dir/plain"
expect 7 "" "exit status is the program's" "$run" -- sh -c "exit 7"
expect 0 "--netdev nope0" "what follows the program is the program's" "$run" echo --netdev nope0
expect 0 "RXE_ADDR=127.0.0.2" "--addr" "$run" --addr=127.0.0.2 "$dir/show"
expect 0 "RXE_STATS=f.%p" "--stats=FILE" "$run" --stats=f.%p "$dir/show"
expect 0 "RXE_STATS=
" "--stats takes no program for a file" "$run" --stats "$dir/show"
expect 0 "RXE_PCAP=p" "--pcap" "$run" --pcap p "$dir/show"
expect 0 "RXE_LANES=4" "--lanes" "$run" --lanes 4 "$dir/show"
expect 0 "RXE_FAULT=drop=1%" "--fault" "$run" --fault drop=1% "$dir/show"
expect 0 "RXE_LOG=error" "--log" "$run" --log error "$dir/show"
expect 0 "LD_PRELOAD=$dir/tree/verbs/librxe-verbs.so
" "the library of the build tree" "$run" "$dir/show"
expect 0 "LD_PRELOAD=$dir/tree/verbs/librxe-verbs.so:libm.so.6" "goes before what is preloaded" \
	env LD_PRELOAD=libm.so.6 "$run" "$dir/show"
expect 0 "LD_PRELOAD=$dir/inst/$libdir/rxe-xrc/librxe-verbs.so" "the installed library, moved" "$dir/inst/bin/rxe-run" "$dir/show"
ln -s "$run" "$dir/link"
expect 0 "LD_PRELOAD=$dir/tree/verbs/librxe-verbs.so" "started by a link" "$dir/link" "$dir/show"
expect 126 "cannot find librxe-verbs.so" "no library" "$dir/alone/rxe-run" true
expect 126 "space" "a path that cannot be preloaded" "$dir/a b/rxe-run" true
expect 0 "xrc_lo" "the program sees the device" "$run" --netdev lo -- ls /sys/class/infiniband
expect 0 "linked statically" "a static program is started with a warning" "$run" "$static"
"$run" true >"$dir/out" 2>&1 && [ ! -s "$dir/out" ]
ok $? "silent when all is well"
if [ "$(id -u)" -eq 0 ]; then
	cp /bin/true "$dir/suid" && chown 65534 "$dir/suid" && chmod 4755 "$dir/suid"
	expect 0 "changes its user" "a setuid program is started with a warning" "$run" "$dir/suid"
fi
echo "1..$n"
exit $failed
