# Rules for single lines, and for the length of files.

function report(rule, what) { printf "%s:%d: %s: %s\n", FILENAME, FNR, rule, what }

function close_file() {
  if (lines > 500) printf "%s:%d: file-length: %d lines, at most 500\n", file, lines, lines
  if (file ~ /\.(h|cuh)$/ && !once) printf "%s:1: pragma: no #pragma once\n", file
}

FNR == 1 {
  if (file != "") close_file()
  file = FILENAME
  once = 0
  name = file
  sub(/.*\//, "", name)
  if (name ~ /(^|_)(utils?|common|helpers?|misc|impl|v2|new)(_|\.)/)
    report("name", "name the file for what it holds")
  if (file ~ /\.cuh?$/ && file !~ /^src\/(tensor|gemm|ops|cache)\//)
    report("kernel", "CUDA belongs in src/{tensor,gemm,ops,cache}")
}

{
  lines = FNR
  columns = $0
  gsub(/[\200-\277]/, "", columns)  # continuation bytes of UTF-8
  if (length(columns) > 100) report("line-length", length(columns) " columns, at most 100")
}

/^#pragma once/ { once = 1 }

/^[ \t]*#[ \t]*(if|ifdef|ifndef|elif)([ \t(!]|$)/ && FILENAME ~ /\.(h|cpp|cu|cuh)$/ {
  if (FILENAME != "src/tensor/device.h")
    report("preprocessor", "#if belongs in src/tensor/device.h alone")
}

END { if (file != "") close_file() }
