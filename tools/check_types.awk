# Types of one name in one namespace in two files: the linker would use the members of one for both,
# without an error. Types of an unnamed namespace are local to the file. A declaration head of
# several lines is not detected.

FNR == 1 { space = ""; hidden = 0 }
/^namespace \{/ { hidden = 1; next }
/^\}  \/\/ namespace$/ { hidden = 0; next }
/^namespace [a-z:]+ \{/ { space = $2; next }

!hidden && /^(struct|class|enum class|union) [A-Z][A-Za-z0-9]*( final)?( : .*)? \{/ {
  name = $1 == "enum" ? $3 : $2
  key = space "::" name
  if (key in first && first[key] != FILENAME)
    printf "%s:%d: type: %s is defined in %s, too\n", FILENAME, FNR, key, first[key]
  else
    first[key] = FILENAME
}
