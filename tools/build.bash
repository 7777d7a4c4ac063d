# Functions that ./fovea and ./test share: Debian packages and builds. To be sourced with $root set
# to the project's folder. All output goes to stderr, because stdout belongs to the program.

say() { printf 'fovea: %s\n' "$*" >&2; }

stop() {  # stop CODE MESSAGE...
  local code=$1
  shift
  say "$@"
  exit "$code"
}

# The entries of the named sections of tools/packages, each as NAME|NAME...
packages_of() {
  local section='' line wanted=" $* "
  while IFS= read -r line; do
    line=${line%%#*}
    line=${line//[[:space:]]/}
    case $line in
      '') ;;
      \[*\]) section=${line:1:-1} ;;
      *) [[ $wanted != *" $section "* ]] || printf '%s\n' "$line" ;;
    esac
  done <"$root/tools/packages"
}

# Whether this is installed, as a package (held ones count) or as a command.
is_present() {
  ! command -v -- "$1" >/dev/null || return 0
  [[ $(dpkg-query -W -f='${db:Status-Abbrev}\n' "$1" 2>/dev/null) =~ (^|$'\n').i ]]
}

# Prints the entries of the sections for which no alternative is present.
missing_of() {
  local entry name names found
  while IFS= read -r entry; do
    found=no
    IFS='|' read -ra names <<<"$entry"
    for name in "${names[@]}"; do
      ! is_present "$name" || found=yes
    done
    [[ $found == yes ]] || printf '%s\n' "$entry"
  done < <(packages_of "$@")
}

# Whether apt can install this. For a name that only other packages mention, apt-cache succeeds but
# prints nothing.
is_offered() { [[ -n $(apt-cache show "$1" 2>/dev/null) ]]; }

# For each entry, the first package that this system offers; if there is none, the first package.
to_install() {  # to_install ENTRY...
  local entry name names chosen
  for entry in "$@"; do
    chosen=
    IFS='|' read -ra names <<<"$entry"
    for name in "${names[@]}"; do
      [[ -n $chosen || $name == *'*'* ]] || ! is_offered "$name" || chosen=$name
    done
    printf '%s\n' "${chosen:-${entry%%|*}}"
  done
}

apt_install() {  # apt_install ENTRY...
  local as_root=()
  [[ $(id -u) == 0 ]] || as_root=(sudo -n)
  local get=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q
    -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2)
  local install=("${get[@]}" install -y --no-install-recommends)
  # shellcheck disable=SC2046  # one word for each package
  "${install[@]}" $(to_install "$@") || {
    "${get[@]}" update && "${install[@]}" $(to_install "$@")
  }
}

may_install() {
  [[ ${FOVEA_NO_INSTALL:-0} == 0 ]] && command -v dpkg-query >/dev/null &&
    command -v apt-get >/dev/null
}
has_root() { [[ $(id -u) == 0 ]] || sudo -n true 2>/dev/null; }

# Whether CMake finds all libraries.
cmake_finds_all() {  # cmake_finds_all SECTION...
  { command -v cmake && command -v ninja; } >/dev/null || return 1
  local folder status=0 units=OFF
  [[ " $* " != *" units "* ]] || units=ON
  folder=$(mktemp -d)
  (cd "$root" && cmake --preset release -B "$folder" -DFOVEA_TESTS=$units) &>/dev/null || status=1
  rm -rf "$folder"
  return $status
}

# need_packages SECTION...: installs missing packages, or prints how to install them and stops with
# 5. Does nothing on systems without apt: there CMake names the missing libraries.
need_packages() {
  may_install || return 0
  local section others=() missing log line
  local command='apt-get update && apt-get install -y --no-install-recommends'
  mapfile -t missing < <(missing_of "$@")
  if [[ ${#missing[@]} -gt 0 ]] && cmake_finds_all "$@"; then
    for section in "$@"; do
      [[ $section == @(build|units) ]] || others+=("$section")
    done
    mapfile -t missing < <(missing_of "${others[@]}")
  fi
  [[ ${#missing[@]} -gt 0 ]] || return 0
  line=$(to_install "${missing[@]}" | tr '\n' ' ')
  if ! has_root; then
    say "these Debian packages are missing: $line"
    say "please run, as root:  $command $line"
    stop 5 "with libraries of your own, name their folder in CMAKE_PREFIX_PATH;" \
      "FOVEA_NO_INSTALL=1 skips this check"
  fi
  log=$(mktemp)
  say "installing Debian packages: $line"
  if ! apt_install "${missing[@]}" 2>&1 | progress "$log" "installing packages"; then
    tail -n 15 "$log" >&2
    say "apt-get failed (log: $log)"
    stop 5 "please run, as root:  $command $line"
  fi
  rm -f "$log"
}

# want_packages SECTION: installs missing packages if possible. Fails without a message if it
# cannot, for example because this system does not offer them.
want_packages() {
  local missing name
  may_install || return 1
  mapfile -t missing < <(missing_of "$1")
  [[ ${#missing[@]} -gt 0 ]] || return 0
  has_root || return 1
  for name in $(to_install "${missing[@]}"); do
    is_offered "$name" || return 1
  done
  apt_install "${missing[@]}" &>/dev/null
}

# One job per core, fewer if memory is short: a compiler may take 1.2 GB.
jobs_here() {
  local cores kilobytes fit
  cores=$(nproc)
  kilobytes=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
  fit=$((${kilobytes:-4000000} / 1200000))
  ((fit >= 1)) || fit=1
  echo $((cores < fit ? cores : fit))
}

# bar DONE ALL: "[=====     ]"
bar() {
  local full=$((30 * $1 / ($2 > 0 ? $2 : 1)))
  printf '[%-30s]' "$(printf '%*s' "$full" '' | tr ' ' '=')"
}

# Copies the output of a long command to LOG and shows its progress on stderr, also while it prints
# nothing. On a terminal it redraws one line every second, with a bar if it finds ninja's
# [done/all]. Otherwise it prints a line every five seconds, or every PAUSE seconds.
progress() {  # progress LOG LABEL [PAUSE]
  local line part='' status=0 built=0 all=0 pause=${3:-5} began=$SECONDS told=$SECONDS
  local count='^\[([0-9]+)/([0-9]+)\]|^fovea: .* built ([0-9]+) of ([0-9]+)'
  [[ ! -t 2 ]] || pause=1
  while ((status == 0 || status > 128)); do  # status 0: a line; above 128: timeout; 1: the end
    status=0
    IFS= read -r -t 1 line || status=$?
    part+=$line
    if ((status == 0)) || ((status < 128 && ${#part} > 0)); then
      printf '%s\n' "$part" >>"$1"
      [[ ! $part =~ $count ]] ||
        built=${BASH_REMATCH[1]}${BASH_REMATCH[3]} all=${BASH_REMATCH[2]}${BASH_REMATCH[4]}
      part=''
    fi
    if ((SECONDS - told >= pause)); then
      told=$SECONDS
      tell_progress "$2" "$built" "$all" $((SECONDS - began))
    fi
  done
  [[ ! -t 2 ]] || printf '\r\033[K' >&2
}

tell_progress() {  # tell_progress LABEL DONE ALL SECONDS
  local text="$1, $4 s"
  ((!$3)) || text="$1: built $2 of $3, $4 s"
  if [[ ! -t 2 ]]; then
    say "$text"
  elif (($3)); then
    printf '\r\033[Kfovea: %s %s' "$(bar "$2" "$3")" "$text" >&2
  else
    printf '\r\033[Kfovea: %s' "$text" >&2
  fi
}

build_failed() {  # build_failed LOG
  grep -nE 'error:|Error|FAILED:|undefined reference' "$1" | head -n 20 >&2 || tail -n 20 "$1" >&2
  stop 1 "the build failed; the whole log is in $1"
}

# Removes a build folder that was moved or copied from another place, because CMake stores absolute
# paths.
forget_moved() {  # forget_moved FOLDER
  [[ -f $1/CMakeCache.txt ]] || return 0
  grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$1/CMakeCache.txt" || rm -rf "$1"
}

# build PRESET TESTS TARGET...: TESTS is on, off or keep (the configured value, or off). Only one
# build runs at a time; a second one waits.
build() {
  local preset=$1 tests=$2
  shift 2
  local folder=$root/build/$preset log=$root/build/$preset.log
  mkdir -p "$folder" 2>/dev/null && : 2>/dev/null >>"$root/build/.lock" ||
    stop 5 "cannot write to $root/build: building needs a writable tree." \
      "Copy the project to a folder of your own, or build it once as its owner."
  (
    flock -n 9 || { say "another build is running; waiting for it" && flock 9; }
    forget_moved "$folder"
    : >"$log"
    if [[ ! -f $folder/build.ninja || $tests != keep ]]; then
      [[ $tests != keep ]] || tests=off
      (cd "$root" && cmake --preset "$preset" -DFOVEA_TESTS="${tests^^}") 2>&1 |
        progress "$log" "configuring $preset" || build_failed "$log"
    fi
    NINJA_STATUS='[%f/%t] ' ninja -C "$folder" -j "$(jobs_here)" "$@" 2>&1 |
      progress "$log" "building $preset" || build_failed "$log"
  ) 9>>"$root/build/.lock"
}
