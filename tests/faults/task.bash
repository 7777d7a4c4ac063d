# The training of the scripts in this folder. To be sourced, with DIR, FOVEA and UPDATES set.
# ATTENTION, if set, is the attention of a recurrent model; otherwise the model is a Transformer.

# A corpus of sentences to reverse: large enough to shuffle, small enough to be fast.
awk 'BEGIN { srand(7); for (i = 0; i < 600; i++) { n = 1 + int(7 * rand()); s = t = ""
  for (k = 0; k < n; k++) { w = "w" int(20 * rand()); s = s w " "; t = w " " t }
  print s > "'"$DIR"'/train.src"; print t > "'"$DIR"'/train.tgt" } }'
head -50 "$DIR/train.src" >"$DIR/valid.src"
head -50 "$DIR/train.tgt" >"$DIR/valid.tgt"

network() {  # the settings that only one type of network has
  if [[ -n ${ATTENTION:-} ]]; then
    echo --set model.type=recurrent --set model.cell=lstm --set model.decoder=luong \
      --set model.attention="$ATTENTION"
  else
    echo --set model.inner=32 --set model.heads=2
  fi
}

train() {  # MODEL_DIR LOG: runs until it ends or is killed; appends to the log
  # Runs alternate between one and two threads: the number must not affect the result.
  exec env OMP_NUM_THREADS=$((1 + ${runs:-0} % 2)) \
    "$FOVEA" train -o "$1" --data "$DIR" --log-format plain \
    --set data.train_source=train.src --set data.train_target=train.tgt \
    --set data.valid_source=valid.src --set data.valid_target=valid.tgt \
    --set vocabulary.kind=words --set vocabulary.size=0 \
    --set model.encoder_layers=1 --set model.decoder_layers=1 --set model.size=16 \
    --set model.dropout=0.2 $(network) \
    --set batch.tokens=120 --set train.accumulate=2 --set train.updates=$UPDATES \
    --set train.average=3 --set train.log_every=7 --set optimizer.ema=0.9 \
    --set optimizer.clip=1 --set schedule.lr=0.01 --set schedule.warmup=20 \
    --set valid.every=25 --set valid.metrics=[ppl,bleu] --set valid.patience=0 \
    --set checkpoint.every=5 ${FOVEA_KILL_SET:-} 2>>"$2"
}

result() {  # MODEL_DIR: the files that must have the same bytes after every run
  (cd "$1" && sha256sum "$(printf 'checkpoints/checkpoint-%08d.safetensors' "$UPDATES")" \
    $(ls model.safetensors adapter.safetensors vocab.txt 2>/dev/null) &&
    sed 's/,"wall":.*/}/' metrics.jsonl | sha256sum)
}
