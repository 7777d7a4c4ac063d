# Only src/cli knows the options of the command line: a message of another module names the field
# in backquotes, and src/cli/flag_names.cpp has the flag of each field. Options of other programs
# are allowed after the name of the program.

# The string literals of a line, each between line ends.
function literals(line, text, c, i, quoted) {
  for (i = 1; i <= length(line); i++) {
    c = substr(line, i, 1)
    if (!quoted && c == "'" && substr(line, i + 2, 1) == "'") i += 2
    else if (!quoted && substr(line, i, 2) == "//") break
    else if (c == "\"") { quoted = !quoted; text = text "\n" }
    else if (!quoted) continue
    else if (c == "\\") { text = text c; i++ }
    else text = text c
  }
  return text "\n"
}

FILENAME ~ /^src\// && FILENAME !~ /^src\/cli\// && /"/ && /-[a-z]/ {
  text = literals($0)
  sub(/(^|[^a-z])(cmake|iconv|ss|unzip) .*/, "", text)
  if (match(text, /[ \n(`']--[a-z][a-z-]*/) || match(text, /[ \n(`']-[a-z] /) ||
      match(text, / -[a-z][ \n,;.)']/))
    printf "%s:%d: flag: '%s' in a message; name the field, src/cli adds the flag\n", FILENAME, FNR,
           substr(text, RSTART + 1, RLENGTH - 1)
}
