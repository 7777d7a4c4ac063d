# Includes follow the table of modules (tools/modules, passed as `modules`), and includes between
# files have no cycles. Libraries that take long to compile are included by one file each. A module
# without its tests has at most the number of lines that the table allows.

function module_of(path) {
  if (path !~ /^src\//) return ""
  sub(/^src\//, "", path)
  sub(/\/.*/, "", path)
  return path
}

# Permits the modules that `module` may include, directly or through others.
function permit(module, through, list, count, i) {
  if ((module, through) in may) return
  may[module, through] = 1
  count = split(direct[through], list, " ")
  for (i = 1; i <= count; i++) permit(module, list[i])
}

function visit(node, trail, list, count, i) {
  state[node] = 1
  count = split(edges[node], list, " ")
  for (i = 1; i <= count; i++) {
    if (state[list[i]] == 1)
      printf "%s:%d: cycle: includes %s, which comes back to it\n",
             node, where[node, list[i]], list[i]
    else if (!state[list[i]]) visit(list[i])
  }
  state[node] = 2
}

BEGIN {
  while ((getline line < modules) > 0) {
    if (line ~ /^#/ || line !~ /:/) continue
    module = line
    sub(/:.*/, "", module)
    sub(/^[^:]*: */, "", line)
    if (line ~ /\|/) {
      budget[module] = line
      sub(/[^|]*\| */, "", budget[module])
      sub(/ *\|.*/, "", line)
    }
    direct[module] = line
    known[module] = 1
  }
  for (module in known) permit(module, module)
  only["CLI"] = "src/cli/command_line.cpp"
  only["boost"] = "src/http/connection.h src/http/connection.cpp"
}

FNR == 1 {
  module = module_of(FILENAME)
  if (module != "" && !(module in known) && FILENAME ~ /^src\/.*\//)
    printf "%s:1: module: %s is not in the table of modules\n", FILENAME, module
}

module != "" && FILENAME !~ /_test\.cpp$/ { lines[module]++ }

/^#include "/ {
  path = $0
  sub(/^#include "/, "", path)
  sub(/".*/, "", path)
  target = path
  sub(/\/.*/, "", target)
  if (module == "") next
  if (!(target in known) || path !~ /\//) {
    if (FILENAME !~ /_test\.cpp$/)
      printf "%s:%d: module: \"%s\" is not of the form \"module/file\"\n", FILENAME, FNR, path
    next
  }
  if (module in known && !((module, target) in may))
    printf "%s:%d: module: %s may not include %s\n", FILENAME, FNR, module, target
  edges[FILENAME] = edges[FILENAME] " src/" path
  where[FILENAME, "src/" path] = FNR
}

/^#include </ {
  library = substr($0, 11)
  sub(/\/.*/, "", library)
  if (library in only && !index(" " only[library] " ", " " FILENAME " "))
    printf "%s:%d: library: only %s may include <%s/...>\n", FILENAME, FNR, only[library], library
}

END {
  for (node in edges) if (!state[node]) visit(node)
  for (module in budget)
    if (lines[module] > budget[module] + 0)
      printf "tools/modules:1: budget: %s has %d lines without tests, at most %d\n",
             module, lines[module], budget[module]
}
