# What is checked inside a guest. As the first process it sets the machine up, and runs itself as root and as a
# plain user. Every check prints one line, `CHECK ok WHO WHAT` or `CHECK FAIL WHO WHAT: ...`.
#
# abi: Landlock's version, as the host expects it of this kernel. Nothing is enforced below 3, and all of it from there.

export PATH=/usr/bin
tree=/sys/fs/cgroup

switch() { # NAME: a word `ringfence.NAME=...` of the kernel's command line
  sed -n "s/.*ringfence\.$1=\([^ ]*\).*/\1/p" /proc/cmdline
}

verdict() { # WHAT GOOD DETAIL
  if [ "$2" = yes ]; then
    echo "CHECK ok $who $1"
  else
    echo "CHECK FAIL $who $1: $(echo "$3" | tr '\n' '~' | cut -c 1-900)"
  fi
}

# expect WHAT STATUS TEXT COMMAND...: how it ends, and something that it says (an extended expression).
expect() {
  local what="$1" status="$2" text="$3" said got
  shift 3
  said=$("$@" 2>&1)
  got=$?
  if [ "$got" = "$status" ] && echo "$said" | grep -Eq -- "$text"; then
    verdict "$what" yes
  else
    verdict "$what" no "status $got instead of $status, or not /$text/: $said"
  fi
}

# pair WHAT CONFINED OPERATION...: free it succeeds, confined it answers this. $flags says how it is confined, $made what
# has to go again in between.
pair() {
  local what="$1" confined="$2" said
  shift 2
  said=$(probe "$@" 2>&1)
  rm -f "$made"
  [ "$said" = ok ] || { verdict "$what" no "free: $said"; return; }
  expect "$what" 0 "^($confined)\$" ringfence run $flags -- probe "$@"
  rm -f "$made"
}

gone() { # WHAT: no process called `sleep 4321` is left, and no cgroup of a session's
  local left tries=0
  while left=$(pgrep_sleepers; find $tree -name 'ringfence-*' 2>/dev/null) && [ -n "$left" ] && [ $tries -lt 40 ]; do
    tries=$((tries + 1))
    usleep 100000
  done
  [ -z "$left" ] && verdict "$1" yes || verdict "$1" no "left: $left"
}

pgrep_sleepers() {
  local each
  for each in /proc/[0-9]*/cmdline; do
    tr '\0' ' ' <"$each" 2>/dev/null | grep -q '^sleep 4321 ' && echo "$each"
  done
}

# What can be done on this kernel, what not, and what is said about it.
promises() {
  local preset
  if [ "$abi" -ge 3 ]; then
    expect 'doctor: all promises hold' 0 "namespaces\+landlock$abi\+seccomp: all promises hold" ringfence doctor
    for preset in agent strict terminal track; do
      expect "preset $preset starts" 7 '' ringfence run --preset $preset -- sh -c 'exit 7'
    done
    flags=
  else
    expect 'doctor: not all holds' 1 'does not hold' ringfence doctor
    for preset in agent strict terminal; do
      rm -f marker
      expect "preset $preset is refused" 125 'Landlock' ringfence run --preset $preset -- touch marker
      [ -e marker ] && verdict "preset $preset ran nothing" no 'it ran' || verdict "preset $preset ran nothing" yes
    done
    expect 'preset track starts' 7 '' ringfence run --preset track -- sh -c 'exit 7'
    flags='--on-gap report'
  fi
}

# Allowed inside, and the way out that is next to it.
pairs() {
  pair 'reads the project' ok read file
  pair 'writes the project' ok overwrite written
  pair 'no secret is read' 'EACCES|ENOENT' read "$HOME/.ssh/id_canary"
  pair 'nothing outside is written' 'EACCES|ENOENT|EROFS' overwrite "$HOME/outside/file"
  pair 'no mode outside is changed' 'EACCES|ENOENT|EROFS|EPERM' chmod "$HOME/outside/file" 0o600
  pair 'no loopback service of the host' 'ECONNREFUSED|EACCES' tcp 127.0.0.1:7777
  pair 'loopback inside' ok serve-itself
  sleep 4321 &
  local outside=$!
  expect 'no signal to the outside' 0 '^(ESRCH|EPERM|EACCES)$' ringfence run $flags -- probe kill $outside
  kill -0 $outside && verdict 'whoever is outside lives' yes || verdict 'whoever is outside lives' no 'it is dead'
  kill -9 $outside
  wait $outside 2>/dev/null
}

# Unix sockets of the host, and among the session's own processes: streams and datagrams, in a directory that only the
# session has and in the project.
sockets() { # WHAT DATAGRAMS PROJECT FLAGS...
  local what="$1" datagrams="$2" project="$3"
  shift 3
  flags="$*"
  pair "$what: none of the host" 'EACCES|ENOENT' unix "$HOME/outside/socket"
  case "$flags" in
    *landlock*) ;;
    *)
      made=/tmp/stream-$who pair "$what: stream in /tmp" ok unix-serve-itself "/tmp/stream-$who"
      made=/tmp/datagram-$who pair "$what: datagram in /tmp" "$datagrams" unix-datagram-itself "/tmp/datagram-$who"
      ;;
  esac
  made=$PWD/stream pair "$what: stream in the project" "$project" unix-serve-itself "$PWD/stream"
  made=$PWD/datagram pair "$what: datagram in the project" "$datagrams" unix-datagram-itself "$PWD/datagram"
}

survivors() { # WHAT FLAGS...
  local what="$1"
  shift
  expect "$what: ends with daemons" 3 '' ringfence run "$@" -- \
    sh -c 'for each in 1 2 3; do (setsid sh -c "trap : TERM HUP INT; sleep 4321 & sleep 4321" &) ; done; usleep 300000; exit 3'
  gone "$what: nobody survives"
}

# Limits that a controller holds.
limits() { # WHAT FLAGS...
  local what="$1" hungry='dd if=/dev/zero of=/dev/null bs=192M count=1'
  shift
  $hungry 2>/dev/null && verdict "$what: as much memory can be had" yes || verdict "$what: as much memory can be had" no
  expect "$what: enough memory" 0 '' ringfence run "$@" --limit memory=1GiB -- $hungry
  expect "$what: not enough memory" 137 '' ringfence run "$@" --limit memory=64MiB --report report.json -- $hungry
  expect "$what: the report says memory" 0 '"limit": *"memory"' cat report.json
  expect "$what: memory of many" 137 '' ringfence run "$@" --limit memory=64MiB -- \
    sh -c 'setsid sleep 4321 & '"$hungry"' & wait $!; sleep 30'
  gone "$what: all of it ended"
  expect "$what: processes fail to start" 2 "can't fork" ringfence run "$@" --limit processes=24 -- \
    sh -c 'for i in $(seq 60); do sleep 4321 & done; exit 0'
  gone "$what: nothing left"
}

# Landlock alone: what it cannot hold stops the launch or is told, and the rest holds.
landlock() { # WHAT
  flags='--engine landlock --on-gap report'
  expect "$1, landlock engine: refused by itself" 125 'extended attributes' ringfence run --engine landlock -- true
  ringfence run $flags --report report.json -- true 2>/dev/null
  expect "$1, landlock engine: secrets are a gap" 0 '"rule":"/home: hidden"' cat report.json
  pair "$1, landlock engine: project" ok overwrite written
  pair "$1, landlock engine: nothing outside is written" EACCES overwrite "$HOME/outside/file"
  pair "$1, landlock engine: no network" EACCES tcp 127.0.0.1:7777
  pair "$1, landlock engine: no socket of the host" EACCES unix "$HOME/outside/socket"
}

# confined WHAT ANSWERS OPERATION...: what several operations answer inside, one after the other.
confined() {
  local what="$1" answers="$2"
  shift 2
  expect "$what" 0 "^$answers \$" sh -c 'ringfence run -- probe "$@" | tr "\n" " "' sh "$@"
}

# Protected names in a directory that does not tell capital letters from small ones.
spellings() {
  local name
  if ! cd "$HOME/folding/project" 2>/dev/null; then
    echo 'no file system of this kernel folds names without a disk'
    return
  fi
  probe mkdir .GIT >/dev/null
  [ -d .git ] && verdict 'folding: two spellings are one name' yes || verdict 'folding: two spellings are one name' no
  rmdir .GIT
  mkdir -p ready sub/.GIT/objects sub/.GIT/refs
  echo '[core]' | tee sub/.GIT/HEAD >sub/.GIT/config
  for name in .GIT .Vscode .EnvRC .ringFENCE .gi"$(printf '\342\200\214')"t; do
    confined "folding: no $name" 'EROFS EROFS EROFS EROFS' \
      create "$name" , mkdir "$name" , symlink ready "$name" , rename ready "$name"
  done
  confined 'folding: no name below another spelling' 'ok EROFS' mkdir .GitHub , mkdir .GitHub/Workflows
  rmdir .github
  mkdir .VSCODE
  confined 'folding: what is there is read-only' 'EROFS EROFS EROFS ok' \
    create .VSCODE/tasks.json , create .vscode/tasks.json , create .VsCode/tasks.json , create .gitx
  probe read sub/.git/config | grep -q ^ok && verdict 'folding: a repository is read' yes ||
    verdict 'folding: a repository is read' no
  confined 'folding: a repository is hidden' '(ENOENT|EACCES) (ENOENT|EACCES)' \
    read sub/.GIT/config , read sub/.git/config
  [ "$(ls -A | sort | tr '\n' ' ')" = '.VSCODE .gitx ready sub ' ] &&
    verdict 'folding: nothing is left' yes || verdict 'folding: nothing is left' no "$(ls -A)"
}

# The kernel's switches, turned by root and seen by a plain user.
switched() { # NAME VALUE
  rm -f marker
  expect "doctor names $1" 1 "$1 is $2" ringfence doctor
  expect "doctor says what to do: $1" 1 'sudo (sysctl -w|tee)' ringfence doctor
  expect "refused: $1" 125 "$1 is $2" ringfence run -- touch marker
  [ -e marker ] && verdict "$1: nothing ran" no 'it ran' || verdict "$1: nothing ran" yes
  [ "$abi" -ge 1 ] && landlock "$1"
}

check() {
  who=$(id -un)
  abi=$(switch abi)
  cd "$HOME/project" || { verdict 'there is a project' no; exit; }
  case "$1" in
    all)
      promises
      if [ "$abi" -ge 1 ]; then
        pairs
        # From 9 on the kernel tells them apart; before, the supervisor does, as far as it can.
        by_kernel=EACCES
        [ "$abi" -ge 9 ] && by_kernel=ok
        report=$flags
        sockets 'sockets' $by_kernel $by_kernel $report
        sockets 'sockets beside a gate' $by_kernel $by_kernel --allow-host example.org $report
        sockets 'sockets, landlock engine' $by_kernel $by_kernel --engine landlock --on-gap report
      fi
      survivors 'track' --preset track
      [ "$abi" -ge 3 ] && survivors 'namespaces'
      [ "$abi" -ge 1 ] && survivors 'landlock' --engine landlock --on-gap report
      ;;
    spellings) [ "$abi" -ge 3 ] && spellings ;;
    limits)
      [ "$abi" -ge 3 ] && limits 'namespaces'
      limits 'track' --preset track
      [ "$abi" -ge 1 ] && limits 'landlock' --engine landlock --on-gap report
      ;;
    *) switched "$1" "$2" ;;
  esac
}

plain() {
  su -s /usr/bin/sh plain -c "HOME=/home/plain exec sh /guest.sh $1"
}

turned() { # SWITCH VALUE: checked as a plain user, and turned back
  local file="/proc/sys/$1" before
  [ -e "$file" ] || { echo "no switch $1"; return; }
  before=$(cat "$file")
  echo "$2" >"$file"
  plain "$(echo "$1" | tr / .) $2"
  echo "$before" >"$file"
}

# A test program of the project's own: one line for each test that failed, and one for all.
tests() { # PROGRAM FILTER...
  local program="$1" out
  shift
  out=$("$program" --test-threads 2 "$@" 2>&1)
  echo "$out"
  echo "$out" | sed -n "s/^test \(.*\) \.\.\. FAILED\$/CHECK FAIL $who $program: \1: see the log/p" | sort -u
  # A test that starts itself again has results of its own in between.
  out=$(echo "$out" | sed -n 's/^test result: .*\. \([1-9][0-9]* passed\).*/\1/p' | tail -n 1)
  if [ -n "$out" ]; then
    verdict "$program: $out" yes
  else
    verdict "$program" no 'it did not run'
  fi
}

start() {
  mount -t proc proc /proc
  mount -t sysfs sysfs /sys
  mount -t securityfs securityfs /sys/kernel/security
  mount -t devtmpfs -o mode=0755 devtmpfs /dev
  mkdir -p /dev/pts /dev/shm
  mount -t devpts -o mode=0620,ptmxmode=0666 devpts /dev/pts
  mount -t tmpfs -o mode=1777 shm /dev/shm
  mount -t cgroup2 cgroup2 $tree
  chmod 1777 /tmp
  ifconfig lo 127.0.0.1 up
  cat /proc/version
  for home in /root /home/plain; do
    mkdir -p $home/.ssh $home/project $home/outside
    echo secret >$home/.ssh/id_canary
    echo outside >$home/outside/file
    echo project >$home/project/file
    probe unix-serve-for $home/outside/socket 100000000 &
    # From 6.13 on.
    mkdir $home/folding
    mount -t tmpfs -o casefold,mode=0755 folding $home/folding && mkdir $home/folding/project &&
      probe fold $home/folding/project
  done
  echo 'root:*:::::::' >/etc/shadow
  chmod 0600 /etc/shadow
  chown -R plain:plain /home/plain
  chmod 0700 /root /home/plain
  # Groups as systemd makes them: each login in a leaf of its own, a plain user's branch is the user's.
  echo '+memory +pids' >$tree/cgroup.subtree_control
  mkdir -p $tree/root/login $tree/plain/login
  for branch in root plain; do echo '+memory +pids' >$tree/$branch/cgroup.subtree_control; done
  for file in '' cgroup.procs cgroup.threads cgroup.subtree_control login login/cgroup.procs login/cgroup.threads; do
    chown plain:plain "$tree/plain/$file"
  done
  nc -ll -p 7777 -e echo hello &

  export HOME=/root
  sh /guest.sh all
  plain all
  sh /guest.sh spellings
  plain spellings
  sh -c "echo \$\$ >$tree/root/login/cgroup.procs && exec sh /guest.sh limits"
  sh -c "echo \$\$ >$tree/plain/login/cgroup.procs && exec su -s /usr/bin/sh plain -c 'HOME=/home/plain exec sh /guest.sh limits'"
  turned user/max_user_namespaces 0
  turned kernel/unprivileged_userns_clone 0
  # Ubuntu's; Debian's kernels do not have it.
  turned kernel/apparmor_restrict_unprivileged_userns 1
  who=root
  # Those of ringfence-sys ask for scopes and for all that was new in 6.12.
  [ "$(switch abi)" -ge 6 ] && tests kernel
  [ -n "$(switch escapes)" ] && tests escapes $(switch escapes | tr , ' ')
  echo CHECKED
  sync
  poweroff -f
}

case "$1" in
  start) start ;;
  *) check "$@" ;;
esac
