# Functions of more than 60 lines, in sources in the layout of clang-format. A function starts with
# the first line of a statement at namespace or class level that has a parameter list and ends in
# `{`. It ends with the `}` at the same indentation.

function indent_of(line) {
  match(line, /^ */)
  return RLENGTH
}

function reset() { statement = ""; start = 0 }

FNR == 1 { reset(); inside = 0; raw = "" }

# Skips raw strings, because their braces are text.
raw != "" {
  if (index($0, raw)) raw = ""
  else next
}

{
  line = $0
  if (match(line, /R"[A-Za-z_]*\(/)) {
    raw = ")" substr(line, RSTART + 2, RLENGTH - 3) "\""
    if (index(substr(line, RSTART + RLENGTH), raw)) raw = ""
  }
}

inside {
  if (line ~ /^ *}/ && indent_of(line) == depth) {
    length_ = FNR - first + 1
    if (length_ > 60)
      printf "%s:%d: function-length: %d lines, at most 60\n", FILENAME, first, length_
    inside = 0
    reset()
  }
  next
}

/^[ \t]*$/ || /^ *(\/\/|#)/ || /^ *(public|private|protected):/ { reset(); next }

{
  sub(/[ \t]*(\/\/|# ).*$/, "", line)
  if (!start) { start = FNR; indent = indent_of(line) }
  statement = statement " " line
}

line ~ /\{$/ {
  head = statement
  sub(/^ */, "", head)
  gsub(/template *<[^{}]*> *(class|struct)/, "struct", head)
  scope = head ~ /^(inline )?(namespace|class|struct|union|enum|extern "C")([ {]|$)/
  if (!scope && head ~ /\(/ && head !~ /= *\{$/ && head !~ /\)\{\{$/) {
    inside = 1
    first = start
    depth = indent
  }
  reset()
  next
}

line ~ /[;}]$/ { reset() }
