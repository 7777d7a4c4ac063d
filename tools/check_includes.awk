# Includes run downwards along the table of rooms (tools/rooms, passed as `rooms`), and no chain
# of includes between files comes back to where it began. Libraries that take long to compile are
# known to one file each.

function room_of(path) {
  if (path !~ /^src\//) return ""
  sub(/^src\//, "", path)
  sub(/\/.*/, "", path)
  return path
}

# What `room` may include, directly or through what it may include.
function permit(room, through, list, count, i) {
  if ((room, through) in may) return
  may[room, through] = 1
  count = split(direct[through], list, " ")
  for (i = 1; i <= count; i++) permit(room, list[i])
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
  while ((getline line < rooms) > 0) {
    if (line ~ /^#/ || line !~ /:/) continue
    room = line
    sub(/:.*/, "", room)
    sub(/^[^:]*: */, "", line)
    direct[room] = line
    known[room] = 1
  }
  for (room in known) permit(room, room)
  only["CLI"] = "src/cli/options.cpp"
  only["boost"] = "src/serve/connection.h src/serve/connection.cpp"
}

FNR == 1 {
  room = room_of(FILENAME)
  if (room != "" && !(room in known) && FILENAME ~ /^src\/.*\//)
    printf "%s:1: room: %s is not in the table of rooms\n", FILENAME, room
}

/^#include "/ {
  path = $0
  sub(/^#include "/, "", path)
  sub(/".*/, "", path)
  target = path
  sub(/\/.*/, "", target)
  if (room == "") next
  if (!(target in known) || path !~ /\//) {
    if (FILENAME !~ /_test\.cpp$/)
      printf "%s:%d: room: \"%s\" is not of the form \"room/file\"\n", FILENAME, FNR, path
    next
  }
  if (room in known && !((room, target) in may))
    printf "%s:%d: room: %s may not include %s\n", FILENAME, FNR, room, target
  edges[FILENAME] = edges[FILENAME] " src/" path
  where[FILENAME, "src/" path] = FNR
}

/^#include </ {
  library = substr($0, 11)
  sub(/\/.*/, "", library)
  if (library in only && !index(" " only[library] " ", " " FILENAME " "))
    printf "%s:%d: library: only %s may include <%s/...>\n", FILENAME, FNR, only[library], library
}

END { for (node in edges) if (!state[node]) visit(node) }
