# Sentences. `phrases` is the file of rejected phrases.
#   phrase: a phrase of the list, in any file
#   wrap: a line of a document has at most 100 columns, except tables, code, pictures, and lines of
#         one word, such as a link

BEGIN {
  while ((getline line < phrases) > 0) {
    if (line ~ /^#/ || line == "") continue
    split(line, parts, " -> ")
    rejected[++count] = "(^|[^A-Za-z])(" parts[1] ")($|[^A-Za-z])"
    usual[count] = parts[2]
    all = all (all == "" ? "" : "|") parts[1]
  }
  all = "(^|[^A-Za-z])(" all ")($|[^A-Za-z])"
}

FNR == 1 { code = 0 }
FILENAME ~ /\.md$/ && /^ *```/ { code = !code }

FILENAME ~ /\.md$/ && !code && !/^ *\|/ && !/^ *!\[/ && /[^ ] +[^ ]/ {
  columns = $0
  gsub(/[\200-\277]/, "", columns)  # continuation bytes of UTF-8
  if (length(columns) > 100)
    printf "%s:%d: wrap: %d columns, at most 100\n", FILENAME, FNR, length(columns)
}

tolower($0) ~ all && !/^ *- not: / && FILENAME !~ /^tools\/(phrases|check_)/ {
  for (i = 1; i <= count; i++)
    if (tolower($0) ~ rejected[i])
      printf "%s:%d: phrase: rejected by tools/phrases, say: %s\n", FILENAME, FNR, usual[i]
}
