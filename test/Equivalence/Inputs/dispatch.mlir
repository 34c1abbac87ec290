// Rows on their way to experts and back. GRID, PLAN (ranks), LOCAL (experts of a rank), TYPE and IDS are put in by each-routing.sh, which
// leaves out what belongs to the other type.

!plan = !moe.plan<experts = 4, ranks = PLAN, tokens = 7, top_k = 3>
shard.grid @grid(shape = GRID)

// A token comes home as often as it was sent; what it sent as values comes home as it was, 0 where it named no expert.
func.func @there_and_back(%ids: tensor<7x3xi32> {IDS}, %x: tensor<7x5xTYPE>, %p: tensor<7x3xf32>)
    -> (tensor<7x5xTYPE>, tensor<7x3xf32>, tensor<7x5xTYPE>, tensor<7x3xf32>) {
  %plan = moe.plan %ids on @grid : tensor<7x3xi32> -> !plan
  %rows, %values = moe.dispatch rows(%x : tensor<7x5xTYPE> -> tensor<?x5xTYPE>) values(%p : tensor<7x3xf32> -> tensor<?xf32>) by %plan on @grid : !plan
  %y, %q = moe.combine rows(%rows : tensor<?x5xTYPE> -> tensor<7x5xTYPE>) values(%values : tensor<?xf32> -> tensor<7x3xf32>) by %plan on @grid : !plan
  %only_rows = moe.dispatch rows(%x : tensor<7x5xTYPE> -> tensor<?x5xTYPE>) by %plan on @grid : !plan
  %only_values = moe.dispatch values(%p : tensor<7x3xf32> -> tensor<?xf32>) by %plan on @grid : !plan
  %z = moe.combine rows(%only_rows : tensor<?x5xTYPE> -> tensor<7x5xTYPE>) by %plan on @grid : !plan
  %r = moe.combine values(%only_values : tensor<?xf32> -> tensor<7x3xf32>) by %plan on @grid : !plan
  return %y, %q, %z, %r : tensor<7x5xTYPE>, tensor<7x3xf32>, tensor<7x5xTYPE>, tensor<7x3xf32>
}

// Each row with the weight that travelled with it, and the experts' sums: a row under another expert, or a weight under another row,
// changes them.
func.func @weighted(%ids: tensor<7x3xi32> {IDS}, %x: tensor<7x5xTYPE>, %p: tensor<7x3xf32>, %d: tensor<7x4xTYPE>)
    -> (tensor<7x5xTYPE>, tensor<7x3xf32>, tensor<LOCALx4x5xf32>) {
  %plan = moe.plan %ids on @grid : tensor<7x3xi32> -> !plan
  %rows, %values = moe.dispatch rows(%x : tensor<7x5xTYPE> -> tensor<?x5xTYPE>) values(%p : tensor<7x3xf32> -> tensor<?xf32>) by %plan on @grid : !plan
  %scaled = moe.scale_rows %rows, %values : tensor<?x5xTYPE>, tensor<?xf32>
  %dot = moe.row_dot %scaled, %rows : tensor<?x5xTYPE> -> tensor<?xf32>
  %drows = moe.dispatch rows(%d : tensor<7x4xTYPE> -> tensor<?x4xTYPE>) by %plan on @grid : !plan
  %w = moe.grouped_matmul_grad %drows, %scaled by %plan : (tensor<?x4xTYPE>, tensor<?x5xTYPE>, !plan) -> tensor<LOCALx4x5xf32>
  %y, %q = moe.combine rows(%scaled : tensor<?x5xTYPE> -> tensor<7x5xTYPE>) values(%dot : tensor<?xf32> -> tensor<7x3xf32>) by %plan on @grid : !plan
  return %y, %q, %w : tensor<7x5xTYPE>, tensor<7x3xf32>, tensor<LOCALx4x5xf32>
}

// The whole layer after its router, and all gradients, once differentiated: of the loss summed over the ranks.
func.func @loss(%ids: tensor<7x3xi32> {IDS}, %labels: tensor<7xi32> {plateau.below = 5 : i64},
    %x: tensor<7x5xTYPE> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %p: tensor<7x3xf32> {moe.parameter = #moe.parameter<"p", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %w13: tensor<LOCALx8x5xTYPE> {moe.parameter = #moe.parameter<"w13", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64, shard = @grid>},
    %w2: tensor<LOCALx5x4xTYPE> {moe.parameter = #moe.parameter<"w2", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64, shard = @grid>}) -> tensor<f32> {
  %plan = moe.plan %ids on @grid : tensor<7x3xi32> -> !plan
  %rows, %values = moe.dispatch rows(%x : tensor<7x5xTYPE> -> tensor<?x5xTYPE>) values(%p : tensor<7x3xf32> -> tensor<?xf32>) by %plan on @grid : !plan
  %h = moe.grouped_matmul %rows, %w13 transpose by %plan : (tensor<?x5xTYPE>, tensor<LOCALx8x5xTYPE>, !plan) -> tensor<?x8xTYPE>
  %a = moe.swiglu %h : tensor<?x8xTYPE> -> tensor<?x4xTYPE>
  %u = moe.grouped_matmul %a, %w2 transpose by %plan : (tensor<?x4xTYPE>, tensor<LOCALx5x4xTYPE>, !plan) -> tensor<?x5xTYPE>
  %z = moe.scale_rows %u, %values : tensor<?x5xTYPE>, tensor<?xf32>
  %y = moe.combine rows(%z : tensor<?x5xTYPE> -> tensor<7x5xTYPE>) by %plan on @grid : !plan
  %one = arith.constant dense<1.0> : tensor<7x5xf32> // of f32
  %wide = arith.mulf %y, %one : tensor<7x5xf32> // of f32
  %wide = arith.extf %y : tensor<7x5xbf16> to tensor<7x5xf32> // of bf16
  %s, %s_lse = moe.log_softmax %wide vocabulary<size = 5>
    : (tensor<7x5xf32>) -> (tensor<7x5xf32>, tensor<7xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<7xi32>
  %l_rows = moe.nll %s, %s_lse, %labels vocabulary<size = 5>
    : (tensor<7x5xf32>, tensor<7xf32>, tensor<7xi32>) -> tensor<7xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<7xf32>
  return %l : tensor<f32>
}
