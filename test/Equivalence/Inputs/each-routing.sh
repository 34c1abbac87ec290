#!/usr/bin/env bash
# each-routing.sh TEMPLATE FOLDER RANKS GRID PLAN TYPE TOLERANCE [TOLERANCE OF A LAYER]: compares compiled code with the interpreter
# on RANKS ranks, for each routing: drawn, all tokens to one expert, experts without tokens, tokens without experts, an expert named
# more than once, and ranks that are unlike. The grid is GRID, the experts lie on PLAN ranks.
set -euo pipefail
template=$1 folder=$2 ranks=$3 grid=$4 plan=$5 type=$6 tolerance=$7 layer=$8

declare -A other=([f32]=bf16 [bf16]=f32)
all='tensor<7x3xi32>'
routings=(
  'plateau.below = 4 : i64'
  "plateau.values = dense<0> : $all"
  "plateau.values = dense<[[0, 3, 3], [3, 0, 0], [0, 0, 3], [3, 3, 0], [0, 3, 0], [3, 0, 3], [0, 3, 3]]> : $all"
  "plateau.values = dense<-1> : $all"
  "plateau.values = dense<[[1, 1, 1], [2, 2, 0], [0, 3, 0], [3, 3, 3], [-1, 2, -1], [-1, -1, -1], [1, -1, 1]]> : $all"
)
if ((ranks > 1)); then # The first rank sends all to the last expert; the others send nothing, but for the last.
  row() { printf '[%s], [%s], [%s], [%s], [%s], [%s], [%s]' "$1" "$1" "$1" "$1" "$1" "$1" "$1"; }
  unlike="[$(row '3, 3, 3')]"
  for ((rank = 1; rank < ranks - 1; ++rank)); do unlike+=", [$(row '-1, -1, -1')]"; done
  unlike+=", [$(row '0, -1, 2')]"
  routings+=("plateau.values = dense<[$unlike]> : tensor<${ranks}x7x3xi32>")
fi

for routing in "${routings[@]}"; do
  sed "s/GRID/$grid/; s/PLAN/$plan/; s/LOCAL/$((4 / plan))/g; s/TYPE/$type/g; s/IDS/$routing/; /of ${other[$type]}$/d" \
    "$template" >"$folder/functions.mlir"
  echo "routing: $routing"
  plateau-run "$folder/functions.mlir" --entry there_and_back --ranks "$ranks" --compare "$tolerance"
  plateau-run "$folder/functions.mlir" --entry weighted --ranks "$ranks" --compare "$tolerance"
  plateau-opt "$folder/functions.mlir" -moe-differentiate -moe-fold-route-grad -canonicalize -cse |
    sed 's/func.func private @loss_and_gradients/func.func @loss_and_gradients/' >"$folder/gradients.mlir"
  plateau-run "$folder/gradients.mlir" --entry loss_and_gradients --ranks "$ranks" --compare "$layer"
done
