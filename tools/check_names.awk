# Names of files and types. `terms` is the file of established terms of one word.
#   name: a public type, that is one at namespace scope in a header, has at least two words or is an
#         established term
#   participle: no type is named by a participle alone
#   twice: no two modules have files of one name, except the op families of src/ops

function report(rule, what) { printf "%s:%d: %s: %s\n", FILENAME, FNR, rule, what }

BEGIN {
  while ((getline line < terms) > 0)
    if (line !~ /^#/ && line != "") known[line] = 1
  irregular = "^(Fed|Found|Given|Grown|Kept|Known|Laid|Learnt|Left|Made|Said|Seen|Shown|Spoilt|" \
              "Taken|Taught|Told|Understood|Worn|Written)$"
}

FNR == 1 && FILENAME ~ /^src\// {
  hidden = 0
  file = FILENAME
  sub(/.*\//, "", file)
  if (FILENAME !~ /^src\/ops\//) {
    if (file in first) report("twice", "the name of " first[file])
    else first[file] = FILENAME
  }
}
/^namespace \{/ { hidden = 1 }
/^\}  \/\/ namespace$/ { hidden = 0 }

# A declaration that defines a type: not a forward declaration.
/^ *(template <[^>]*> *)?(struct|(enum )?class|union) [A-Z][A-Za-z0-9]*( final)?( : .*)?( {|$)/ ||
/^ *using [A-Z][A-Za-z0-9]* =/ {
  match($0, /(struct|class|union|using) [A-Z][A-Za-z0-9]*/)
  name = substr($0, RSTART, RLENGTH)
  sub(/.* /, "", name)
  one_word = name ~ /^[A-Z][a-z0-9]*$/
  if (name in known) next
  if (one_word && (name ~ /(ed|ing)$/ || name ~ irregular))
    report("participle", name " is a participle: name the thing that it holds")
  else if (one_word && !hidden && /^[^ ]/ && FILENAME ~ /\.(h|cuh)$/ && FILENAME ~ /^src\//)
    report("name", name " is one word and no established term (tools/terms)")
}
